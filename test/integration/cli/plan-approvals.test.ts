/** `starling plan` shows the hash that a stage will ask people to approve. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { parseJson } from "#shared/base/json.ts";
import { assignFleet, storeRendering } from "#test/integration/cli/assigned-fleet.ts";
import { type CliFixture, fleet, startCliFixture } from "#test/integration/cli/cli-fixture.ts";

let cli: CliFixture;
afterEach(() => cli.stop());

const [source = "", , group = ""] = fleet.split("---\n");
const gated = `${group}  rollout:
    stages:
      - name: all
        before: [{approval: {by: ["arn:aws:iam::*:role/sre"], count: 2}}]
`;

test("the text has the hash and the command, -o json the same hash, and a plan of one cluster has none", async () => {
  cli = await startCliFixture();
  cli.write("group.yaml", `${source}---\n${gated}`);
  expect(await cli.run("apply -f group.yaml -q --yes")).toMatchObject({ code: 0, err: "" });
  const config = (size: string) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "x" }, data: { size } });
  mkdirSync(join(cli.folder, "app"));
  cli.write("app/all.yaml", JSON.stringify(config("2")));
  const assigned = await storeRendering(cli, [config("1")]);
  await assignFleet(cli, [
    { name: "c1", assigned },
    { name: "c2", assigned },
  ]);
  const shown = await cli.run("plan shop --source app=app -o json");
  const [plan] = (parseJson(shown.out) as { items: { approvals: { plan: string }[] }[] }).items;
  const hash = plan?.approvals[0]?.plan ?? "";
  expect(plan?.approvals).toEqual([
    { stage: "all", plan: hash, clusters: 2, count: 2, by: ["arn:aws:iam::*:role/sre"] },
  ]);
  expect(hash).toMatch(/^[0-9a-f]{32}$/);
  expect((await cli.run("plan shop --source app=app")).out).toContain(
    `Approval: stage all needs 2 approvals of plan ${hash}: starling rollout approve shop -n payments --stage all --plan ${hash} --reason TEXT\n`,
  );
  expect((await cli.run("plan shop --source app=app --cluster c1")).out).not.toContain("Approval:");
});
