/** The verbs below `starling rollout` about single stage runs: the commands that people type, and their output. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import { type CliFixture, fleet, principal, startCliFixture } from "#test/integration/cli/cli-fixture.ts";
import { rolloutRow, shop, storeRollout } from "#test/unit/functions/api/row-fixture.ts";

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

describe("rollout rollback", () => {
  const entry = (number: number, revision: string) => ({
    number,
    identity: `i${number}`,
    revision,
    at: "2026-11-20T09:00:00.000Z",
  });
  const rolledOut = () =>
    storeRollout(cli, {
      number: 12,
      states: { canary: ["Succeeded"], rest: ["Failed"] },
      stageRuns: { rest: { phase: "Halted" } },
      rolloutState: {
        last: 12,
        ledger: [entry(12, "main@sha1:bbbbbbbbbb"), entry(11, "main@sha1:aaaaaaaaaa")],
        stages: [
          { name: "canary", changing: 0, catchingUp: 0, failedCatchUps: 0, members: 1, current: 12, previous: 11 },
          { name: "rest", changing: 0, catchingUp: 0, failedCatchUps: 0, members: 1, current: 11 },
        ],
      },
    });
  const asked = async () => (await cli.table.get(keys.object(shop.namespace, "SyncGroup", shop.name)))?.operations;

  test.each([[""], ["--to 11 "], ["--to aaaaaaa "]])(
    "rollout rollback %sgoes back, holds and says what it rejects",
    async (to) => {
      await rolledOut();
      const ran = await cli.run(`rollout rollback shop ${to}--reason INC-4711`);
      expect(ran).toMatchObject({
        code: 0,
        out: expect.stringContaining(
          "shop goes back to rollout 11, main@sha1:aaaaaaaaaa, in stages canary (1)\n  rejected: 12; held",
        ),
        err: expect.stringContaining("next: starling rollout status shop"),
      });
      expect(await asked()).toMatchObject({
        rollback: { to: 11, by: principal, reason: "INC-4711" },
        hold: { by: principal },
      });
      expect(cli.log.at(-1)).toMatchObject({ audit: true, verb: "rollout rollback", principal, reason: "INC-4711" });
    },
  );

  test("a dry run says the same, and nothing is written", async () => {
    await rolledOut();
    const ran = await cli.run("rollout rollback shop --dry-run --reason INC-4711");
    expect(ran).toMatchObject({ code: 0, out: expect.stringContaining("shop would go back to rollout 11") });
    expect(ran.out).toContain("  not compared: 1 cluster: rollout 11 is not stored any more\n");
    expect(await asked()).not.toHaveProperty("rollback");
  });

  test("it names the templates that stay and those that are created again", async () => {
    await rolledOut();
    const [planned] = rolloutRow(12).plan.templates;
    if (planned === undefined) throw new Error("the plan has a template");
    const planOf = (...names: readonly string[]) => ({
      templates: names.map((name) => ({ ...planned, name })),
      planHash: `sha256:${names.join("")}`,
    });
    for (const put of [rolloutRow(11, { plan: planOf("cache", "db") }), rolloutRow(12, { plan: planOf("web", "api") })])
      await cli.table.write([{ put }]);
    const { out } = await cli.run("rollout rollback shop --dry-run --reason INC-4711");
    expect(out).toContain("  stays: template web, which a later rollout added: the group still has it\n");
    expect(out).toContain(
      "  created again: templates cache, db, which a later rollout dropped: deleted data does not return\n",
    );
    const added = await cli.run("rollout rollback shop --delete-added --reason INC-4711");
    expect(added).toMatchObject({ code: 0, out: expect.not.stringContaining("stays: template web") });
    expect(added.out).toContain("  deleted: template web, which a later rollout added, with all objects\n");
    expect(await asked()).toMatchObject({ rollback: { to: 11, deletes: ["web"] } });
    expect(cli.log.at(-1)).toMatchObject({ audit: true, verb: "rollout rollback-deleting" });
  });

  test.each([
    ["without a reason", "", 2, "--reason TEXT"],
    ["to a rollout that is not kept", "--to 7 --reason x", 1, "rollout 7 is not kept; these are: 12, 11"],
    ["to an unknown revision", "--to ccccccc --reason x", 1, "no kept rollout has revision ccccccc"],
    ["to the newest", "--to 12 --reason x", 1, "no stage has had rollout 12 and has, or updates to, anything newer"],
  ])("a rollback %s is refused, and nothing is written", async (_what, options, code, message) => {
    await rolledOut();
    const ran = await cli.run(`rollout rollback shop ${options}`.trim());
    expect(ran.code).toBe(code);
    expect(ran.err).toContain(message);
    expect(await asked()).not.toHaveProperty("rollback");
  });
});

describe("rollout skip", () => {
  test.each([
    ["--cluster c2", "c2", { cluster: "c2" }, "--cluster c2"],
    ["-l env=prod", "clusters env=prod", { clusters: { text: "env=prod" } }, "-l 'env=prod'"],
  ])("rollout skip %s takes clusters out of the rollout in progress", async (options, which, named, again) => {
    await stored({ phase: "Halted", message: "1 of 2 clusters failed" });
    const ran = await cli.run(`rollout skip shop ${options} --reason INC-4711`.split(" "));
    expect(ran).toMatchObject({
      code: 0,
      out: `shop ${which} skipped: the rollouts in progress go on without\n`,
      err: expect.stringContaining(`next: starling rollout retry shop ${again} --reason`),
    });
    expect(await gates()).toMatchObject([
      { verb: "skip", rollout: 12, stage: "rest", by: principal, reason: "INC-4711", ...named },
    ]);
    expect(cli.log.at(-1)).toMatchObject({ audit: true, verb: "rollout skip", principal, reason: "INC-4711" });
  });

  test.each([
    ["without a reason", "--cluster c2", 2, "--reason TEXT"],
    ["without a cluster", "--reason x", 2, "name the clusters to skip: --cluster NAME, or -l LABELS"],
    ["with a name and labels", "--cluster c2 -l a=b --reason x", 2, "--cluster NAME, or -l LABELS"],
    [
      "of a cluster in no rollout",
      "--cluster c9 --reason x",
      1,
      "cluster c9 is not a target of a stage run in progress",
    ],
  ])("a skip %s is refused, and nothing is written", async (_what, options, code, message) => {
    await stored({ phase: "Halted" });
    const ran = await cli.run(`rollout skip shop ${options}`);
    expect(ran.code).toBe(code);
    expect(ran.err).toContain(message);
    expect(await gates()).toBeUndefined();
  });
});

describe("rollout exempt", () => {
  const exempt = async () => {
    const row = await cli.table.get(keys.object(shop.namespace, "SyncGroup", shop.name));
    return row?.operations.exempt;
  };
  const night = `
apiVersion: starling.dev/v1alpha1
kind: Window
metadata: { name: night }
spec: { clusters: { all: true }, allow: [{ cron: "0 1 * * *", duration: 1h, timeZone: UTC }] }
`;

  test("a group is exempt from a window until a time, is described with that, and unexempt ends it", async () => {
    expect((await cli.run("apply -f - -q", { input: night })).code).toBe(0);
    const ran = await cli.run("rollout exempt shop --until 2h --window night --reason INC-4711");
    expect(ran).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^shop exempt from window night until 20\S+Z: its changes may start\n$/),
      err: expect.stringContaining("next: starling rollout unexempt shop"),
    });
    expect(await exempt()).toMatchObject({ by: principal, reason: "INC-4711", windows: ["night"] });
    expect(cli.log.at(-1)).toMatchObject({ audit: true, verb: "rollout exempt", principal, reason: "INC-4711" });
    expect((await cli.run("describe syncgroup shop")).out).toMatch(/^Exempt: +from night until .*INC-4711/m);
    const ended = await cli.run("rollout unexempt shop");
    expect(ended.out).toBe("shop not exempt any more: its changes wait for their windows\n");
    expect(await exempt()).toBeUndefined();
    expect((await cli.run("rollout unexempt shop")).out).toBe("shop unchanged: it is not exempt\n");
  });

  test.each([
    ["without a reason", "--until 2h", 2, "--reason TEXT"],
    ["without an end", "--reason x", 2, "--until is required"],
    ["until no time", "--until later --reason x", 2, "expected a time or a duration"],
    ["from an unknown window", "--until 2h --window nihgt --reason x", 2, "no Window nihgt is over SyncGroup"],
  ])("an exemption %s is refused, and nothing is written", async (_what, options, code, message) => {
    const ran = await cli.run(`rollout exempt shop ${options}`);
    expect(ran.code).toBe(code);
    expect(ran.err).toContain(message);
    expect(await exempt()).toBeUndefined();
  });
});
