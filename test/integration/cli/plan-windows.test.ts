/** `starling plan` shows which clusters would wait for which windows. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { parseJson } from "#shared/base/json.ts";
import { assignFleet, storeRendering } from "#test/integration/cli/assigned-fleet.ts";
import { type CliFixture, fleet, startCliFixture } from "#test/integration/cli/cli-fixture.ts";

let cli: CliFixture;
afterEach(() => cli.stop());

const [source = "", , group = ""] = fleet.split("---\n");
const windowOf = (name: string, spec: string) =>
  `apiVersion: starling.dev/v1alpha1\nkind: Window\nmetadata: { name: ${name} }\nspec: { ${spec} }\n`;
const hourMs = 3_600_000;
const opens = new Date(Math.ceil(Date.now() / hourMs) * hourMs + 24 * hourMs).toISOString();
const later = `allow: [{ start: "${opens}", end: "${new Date(Date.parse(opens) + hourMs).toISOString()}" }]`;
const never = 'allow: [{ start: "2020-01-01T00:00:00Z", end: "2020-01-02T00:00:00Z" }]';

test("the changed clusters that windows of the installation or of the documents hold back are named", async () => {
  cli = await startCliFixture();
  cli.write("group.yaml", `${source}---\n${group}`);
  expect(await cli.run("apply -f group.yaml -q --yes")).toMatchObject({ code: 0, err: "" });
  const config = (size: string) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "x" }, data: { size } });
  mkdirSync(join(cli.folder, "app"));
  cli.write("app/all.yaml", JSON.stringify(config("2")));
  const assigned = await storeRendering(cli, [config("1")]);
  await assignFleet(
    cli,
    ["c1", "c2", "c3"].map((name) => ({ name, assigned })),
  );
  const stored = `${windowOf("tomorrow", `clusters: { names: [c1, c2] }, groups: { names: [payments/shop] }, ${later}`)}---
${windowOf("others", `groups: { namespaces: [others] }, ${never}`)}`;
  expect((await cli.run("apply -f - -q", { input: stored })).code).toBe(0);
  cli.write("past.yaml", windowOf("past", `clusters: { names: [c3] }, ${never}`));
  const plan = "plan shop --source app=app -f past.yaml";
  const { out } = await cli.run(plan);
  expect(out.split("\n").filter((line) => line.startsWith("Window:"))).toEqual([
    `Window: 2 clusters: c1, c2 would wait for window tomorrow until ${opens.slice(0, "2026-11-30T09:00".length)}Z`,
    "Window: cluster c3 would wait for window past, which never opens again",
  ]);
  const json = await cli.run(`${plan} -o json`);
  const [shown] = (parseJson(json.out) as { items: { windows: object[] }[] }).items;
  expect(shown?.windows).toMatchObject([
    { window: "tomorrow", until: opens, clusters: ["c1", "c2"] },
    { window: "past", clusters: ["c3"] },
  ]);
  expect((await cli.run("rollout exempt shop --until 2h --reason INC-1")).code).toBe(0);
  expect((await cli.run("plan shop --source app=app")).out).not.toContain("Window:");
});
