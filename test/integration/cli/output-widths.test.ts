/**
 * Every command that only reads, over fleets of 10 to 10,000 clusters: in a narrow terminal, in a wide one, and without
 * a terminal.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type CliFixture, startCliFixtureOver } from "#test/integration/cli/cli-fixture.ts";
import type { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { shownFleet } from "#test/support/shown-fleet.ts";

const cluster = "prod-euw1-0000";
const readCommands = [
  "get sources -A",
  "get clusters",
  "get syncgroups -A",
  "get syncs -A",
  "get rollouts -A",
  "get sources,clusters,syncgroups,rollouts -A",
  "get versions -A",
  "get freezes",
  "describe source/app -n platform",
  `describe cluster/${cluster}`,
  "describe syncgroup/ingress -n platform",
  "describe syncgroup/app -n payments",
  "describe rollout/app-2 -n payments",
  `describe sync/ingress.t0 -n platform --cluster ${cluster}`,
  `describe sync/app.t0 -n payments --cluster ${cluster}`,
  `tree cluster/${cluster}`,
  `tree cluster/${cluster} --objects --all`,
  "tree syncgroup/ingress -n platform --objects",
  "tree syncgroup/app -n payments --objects",
  "rollout list -A",
  "rollout list ingress -n platform",
  "rollout status ingress -n platform",
  "rollout status ingress -n platform --all",
  "rollout status ingress -n platform --number 1",
  "rollout status app -n payments",
  "rollout status app -n payments --number 2",
  "rollout status monitoring -n platform",
  "history ingress -n platform",
  "history source/app -n platform",
  "events -A",
  "events syncgroup/app -n payments",
  "explain syncgroup.spec.rollout",
  "explain cluster",
];

/** A command that is meant to be copied stays in one line, because a terminal copies it as one. */
const isWhole = (line: string) => /\bstarling /.test(line);
const words = (text: string) => text.split(/\s+/).filter((word) => word !== "");

describe.each([10, 100, 10_000])("a fleet of %i clusters", (size) => {
  let cli: CliFixture;
  beforeAll(async () => {
    const { table, blobs } = await shownFleet(size, new Date());
    cli = (await startCliFixtureOver(table, blobs as MemoryBlobStore)) as unknown as CliFixture;
  }, 300_000);
  afterAll(() => cli.stop());

  const inTerminal = (line: string, columns: number) =>
    cli.run(line, { columns, outIsTerminal: true, env: { NO_COLOR: "1" } });

  test.each(readCommands)(
    "the output of `%s` fits the terminal, and is whole without one",
    { timeout: 60_000 },
    async (line) => {
      const piped = await cli.run(line);
      expect(piped.out, "nothing is cut without a terminal").not.toMatch(/\S…$/m);
      for (const columns of [80, 200]) {
        const { out } = await inTerminal(line, columns);
        const wider = out.split("\n").filter((text) => [...text].length > columns && !isWhole(text));
        expect(wider, `${columns} columns`).toEqual([]);
        // Only the ends of remarks are cut, with a sign. The output of explain has no header if it has no columns.
        if (!out.includes("…") && !line.startsWith("explain")) expect(words(out).length).toBe(words(piped.out).length);
      }
    },
  );

  test("the counts of versions and stages add up to the size of the fleet", async () => {
    const versions = JSON.parse((await cli.run("get versions -A -o json")).out);
    const on = versions.items.flatMap((item: { versions: { clusters: number }[] }) =>
      item.versions.map(({ clusters }) => clusters),
    );
    expect(on.reduce((sum: number, one: number) => sum + one, 0)).toBe(3 * size);
    for (const columns of [80, 200]) {
      const { out } = await inTerminal("rollout status ingress -n platform --number 2", columns);
      const members = [...out.matchAll(/^ {2}\d \w+ +([\d,]+) /gm)].map(([, count = ""]) =>
        Number(count.replace(",", "")),
      );
      expect(members).toHaveLength(3);
      expect(members.reduce((sum, one) => sum + one, 0)).toBe(size);
      expect(out).toMatch(new RegExp(`^ {2}total +${size.toLocaleString("en")} `, "m"));
    }
  });
});
