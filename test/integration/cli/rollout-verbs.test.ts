/** The verbs below `starling rollout` about single stage runs: the commands that people type, and their output. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import { type CliFixture, fleet, principal, startCliFixture } from "#test/integration/cli/cli-fixture.ts";
import { shop, storeRollout } from "#test/unit/functions/api/row-fixture.ts";

let cli: CliFixture;
beforeEach(async () => {
  cli = await startCliFixture();
  const [, one = ""] = fleet.split("---");
  expect((await cli.run("apply -f - -q", { input: `${fleet}---${one.replace("c1", "c2")}` })).code).toBe(0);
});
afterEach(() => cli.stop());

const stored = (rest: Partial<StageRunRow>) =>
  storeRollout(cli, {
    number: 12,
    states: { canary: ["Succeeded"], rest: ["Failed", "Unreachable"] },
    stageRuns: { rest },
  });
const gates = async () => (await cli.table.get(keys.object(shop.namespace, "SyncGroup", shop.name)))?.operations.gates;
const unverified = { phase: "NothingVerified", message: "nothing verified in stage rest" } as const;

describe("rollout promote", () => {
  test("the stage run that is shown is promoted, with who and why", async () => {
    await stored(unverified);
    const ran = await cli.run("rollout promote shop --stage rest --number 12 --reason INC-4711");
    expect(ran).toMatchObject({
      code: 0,
      out: "shop promoted: rollout 12 passes stage rest (nothing verified in stage rest)\n",
      err: expect.stringContaining("\n  next: starling rollout status shop"),
    });
    expect(await gates()).toMatchObject([
      { verb: "promote", rollout: 12, stage: "rest", by: principal, reason: "INC-4711" },
    ]);
    expect(cli.log.at(-1)).toMatchObject({ audit: true, verb: "rollout promote", principal, reason: "INC-4711" });
  });

  test.each([
    ["without a reason", "--stage rest", 2, "--reason TEXT"],
    ["without a stage", "--reason x", 2, "--stage is required"],
    [
      "of a stage that does not exist",
      "--stage east --reason x",
      2,
      "there is no stage east; the stages are canary, rest",
    ],
    [
      "of a stage without a rollout in progress",
      "--stage canary --reason x",
      1,
      "no rollout is in progress in stage canary",
    ],
    ["of another rollout", "--stage rest --number 11 --reason x", 1, "stage rest updates to rollout 12, and not to 11"],
  ])("a promote %s is refused, and nothing is written", async (_what, options, code, message) => {
    await stored(unverified);
    const ran = await cli.run(`rollout promote shop ${options}`);
    expect(ran.code).toBe(code);
    expect(ran.err).toContain(message);
    expect(await gates()).toBeUndefined();
  });

  test("a promote of a halted stage run names the command that gives failed clusters another turn", async () => {
    await stored({ phase: "Halted", message: "1 of 2 clusters failed" });
    const ran = await cli.run("rollout promote shop --stage rest --reason x");
    expect(ran.code).toBe(1);
    expect(ran.err).toContain("starling rollout retry gives failed targets another turn");
    expect(ran.err).toContain("next: starling rollout status shop -n");
  });
});

describe("rollout retry", () => {
  test.each([
    ["", "every failed cluster", {}],
    ["--state failed", "every failed cluster", {}],
    ["-l env=prod", "failed clusters env=prod", { clusters: { text: "env=prod" } }],
    ["--cluster c2", "c2", { cluster: "c2" }],
  ])("rollout retry %s asks for another turn", async (options, which, named) => {
    await stored({ phase: "Halted", message: "1 of 2 clusters failed" });
    const ran = await cli.run(`rollout retry shop ${options} --reason INC-4711`.split(/ +/));
    expect(ran).toMatchObject({ code: 0, out: `shop: another turn for ${which}\n` });
    expect(await gates()).toMatchObject([{ verb: "retry", reason: "INC-4711", ...named }]);
  });

  test.each([
    ["without a reason", "", 2, "--reason TEXT"],
    ["of clusters in another state", "--state ready --reason x", 2, "only failed clusters are tried again"],
    ["of a cluster that does not exist", "--cluster c9 --reason x", 2, "no cluster c9 is registered"],
  ])("a retry %s is refused, and nothing is written", async (_what, options, code, message) => {
    await stored({ phase: "Halted" });
    const ran = await cli.run(`rollout retry shop ${options}`.trim());
    expect(ran.code).toBe(code);
    expect(ran.err).toContain(message);
    expect(await gates()).toBeUndefined();
  });
});
