/** An operator who was woken types wrong names and numbers, the same command twice, and commands in the wrong order. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type CliFixture, startCliFixtureOver } from "#test/integration/cli/cli-fixture.ts";
import { begin, rings, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";
import { goOn } from "#test/support/wait-stories.ts";

let made: PlannerWorld;
let cli: CliFixture;
const run = (line: string) => cli.run(line, { columns: 400 });
const status = async () => (await run("rollout status web -n shop")).out;

/** The canary fails with the second rollout. */
beforeEach(async () => {
  made = await worldOf({ canary: "canary", c1: "rest", c2: "rest", c3: "rest" }, rings);
  await made.rollOut();
  await made.setSource("bad0001");
  await begin(made);
  await made.finish("canary", "Failed");
  await made.plan();
  cli = await startCliFixtureOver(made.table, made.blobs, { clock: made.clock });
});
afterEach(() => cli.stop());

describe("a refusal names what there is, and a command that helps", () => {
  const shown = "starling rollout status web -n shop";
  test.each([
    ["rollback wbe -n shop --reason x", 1, "SyncGroup shop/wbe does not exist", "starling get syncgroups -n shop"],
    ["rollback web --reason x", 1, "SyncGroup payments/web does not exist", "starling get syncgroups -n payments"],
    ["rollback web -n shop --to 99 --reason x", 1, "rollout 99 is not kept; these are: 2, 1", shown],
    [
      "rollback web -n shop --to 0 --reason x",
      2,
      '"0" is not the number of a rollout',
      "starling rollout list web -n shop",
    ],
    ["unreject web 99 -n shop --reason x", 2, "has no rollout 99; it keeps 2, 1", shown],
    ["reject web 7 -n shop --reason x", 2, "has no rollout 7; it keeps 2, 1", shown],
    [
      "reject web two -n shop --reason x",
      2,
      '"two" is not the number of a rollout',
      "starling rollout list web -n shop",
    ],
    ["reject web -n shop --reason x", 2, "name the rollout by its number", "starling rollout list web -n shop"],
    ["release web -n shop --to 2", 1, "is not held, so that rollout 2 needs no release", shown],
    ["promote web -n shop --stage canary --reason x", 1, "rollout 2 is Halted in stage canary", shown],
    ["approve web -n shop --stage canary --plan abc --reason x", 2, "plan: must be the hash of a plan", shown],
    ["skip web -n shop --cluster c1 --reason x", 1, "in progress: rollout 2 in stage canary", shown],
    [
      "retry web -n shop --cluster canary",
      2,
      "--reason TEXT",
      'starling rollout retry web -n shop --cluster NAME --reason "why"',
    ],
    ["rollback web -n shop", 2, "--reason TEXT", 'starling rollout rollback web -n shop --reason "why"'],
    [
      "undo web -n shop",
      2,
      "is called `rollout rollback`",
      'starling rollout rollback web -n shop --dry-run --reason "why"',
    ],
  ])("starling rollout %s", async (line, code, message, next) => {
    const before = made.table.all();
    const ran = await run(`rollout ${line}`);
    expect(ran).toMatchObject({ code, out: "" });
    expect(ran.err).toContain(message);
    expect(ran.err.split("\n").find((one) => one.startsWith("  next: "))).toContain(`  next: ${next}`);
    expect(made.table.all()).toEqual(before);
  });

  test("the context is said once by a promote", async () => {
    const ran = await run("rollout promote web -n shop --stage canary --reason x");
    expect(ran.err.match(/^context /gm)).toHaveLength(1);
  });
});

describe("a bad version at night", () => {
  test("it is rolled back, held, and the next push goes out after the release, with each command as it is printed", async () => {
    expect(await status()).toContain(
      "starling rollout rollback web -n shop --to 1 --reason …   (takes the stages back",
    );
    const back = "rollout rollback web -n shop --to 1 --reason INC-7";
    expect(await run(back)).toMatchObject({ code: 0, out: expect.stringContaining("goes back to rollout 1") });
    await begin(made);
    expect(await run(back)).toMatchObject({ code: 1, err: expect.stringContaining("is a rollback to 1 already") });
    await goOn(made);

    const held = await status();
    expect(held).toContain("starling rollout release web -n shop --reason …");
    expect(held).toContain("starling rollout unreject web 2 -n shop --reason …   (rollout 2 goes out again)");
    await made.setSource("good002");
    await begin(made);
    expect(await status()).toContain("held by ana: INC-7; rollout 4 waits");
    expect(await run("rollout release web -n shop --reason …")).toMatchObject({ code: 0 });
    expect(await run("rollout release web -n shop")).toMatchObject({ code: 0, out: "web unchanged: it is not held\n" });
    await goOn(made);
    expect(await status()).toMatch(/newest rollout 4: main@sha1:good002 \(Complete\)/);
  });

  test("a release before the rollback, and an unreject of what nobody rejected, change nothing", async () => {
    expect((await run("rollout release web -n shop")).out).toBe("web unchanged: it is not held\n");
    expect((await run("rollout unreject web 2 -n shop --reason x")).out).toBe(
      "web unchanged: rollout 2 is not rejected\n",
    );
    await begin(made);
    expect(await status()).toMatch(/web +Halted/);
  });
});

test("a watch names what it waits for, and the command that ends it, once", async () => {
  await run("rollout hold web -n shop --reason INC-8");
  await begin(made);
  const ended = new AbortController();
  const watching = cli.run("rollout status web -n shop -w", { columns: 400, interrupted: ended.signal });
  setTimeout(() => ended.abort(), 2500);
  const { err } = await watching;
  expect(err.split("\n").filter((line) => line.includes("held by"))).toEqual([
    expect.stringMatching(/held by ana: INC-8; rollout 2 waits: starling rollout release web -n shop --reason …$/),
  ]);
});
