/** The commands `cordon` and `uncordon` as people type them, and what `get` and `describe` show. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { type CliFixture, fleet, principal, startCliFixture } from "#test/integration/cli/cli-fixture.ts";

let cli: CliFixture;
beforeEach(async () => {
  cli = await startCliFixture();
  expect((await cli.run("apply -f - -q", { input: fleet })).code).toBe(0);
});
afterEach(() => cli.stop());

test("a cordon says how it ends, is shown for the cluster, and ends with an uncordon", async () => {
  const ran = await cli.run("cordon c1 --reason INC-4711 --until 2h");
  expect(ran).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^cluster\/c1 cordoned: nothing new is assigned to it, until \d{4}-\S+Z\n$/),
    err: expect.stringContaining("\n  next: starling uncordon c1   (ends the cordon)"),
  });
  expect(cli.log.at(-1)).toMatchObject({ audit: true, verb: "cordon", kind: "Cluster", name: "c1", principal });
  expect((await cli.run("get clusters")).out).toMatch(/^c1 .*Cordoned .*run `starling uncordon c1`/m);
  expect((await cli.run("describe cluster/c1")).out).toMatch(/^Cordoned: +by .*: INC-4711, until /m);
  expect((await cli.run("cordon c1 --reason other --until 3h")).out).toContain("cluster/c1 cordoned: nothing new");
  expect(await cli.run("uncordon c1")).toMatchObject({
    code: 0,
    out: "cluster/c1 uncordoned: it gets what it waited for\n",
  });
  expect((await cli.run("get clusters")).out).not.toContain("Cordoned");
  expect((await cli.run("uncordon c1")).out).toBe("cluster/c1 unchanged: it is not cordoned\n");
});

test.each([
  ["a cordon without a reason", "cordon c1", 2, 'starling cordon c1 --reason "why"'],
  ["a cordon until something that is no time", "cordon c1 --reason x --until later", 2, "--until 2h"],
  ["a cordon that ends in the past", "cordon c1 --reason x --until 2020-01-01T00:00:00Z", 2, "has passed"],
  ["a cordon of a cluster that is not registered", "cordon none --reason x", 1, "Cluster none does not exist"],
])("%s is refused with what to type", async (_what, line, code, message) => {
  const ran = await cli.run(line);
  expect(ran.err).toContain(message);
  expect(ran.code).toBe(code);
});

test("Tab completes the names of clusters", async () => {
  expect((await cli.run("complete -- starling cordon c")).out).toBe("c1\n");
});
