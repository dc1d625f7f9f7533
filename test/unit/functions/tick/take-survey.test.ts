/** The metrics about a fleet every five minutes, which are computed without the rows of its clusters. */
import { expect, test } from "vitest";
import { everyMinute } from "#functions/tick/every-minute.ts";
import { takeSurvey } from "#functions/tick/take-survey.ts";
import { later } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { SourceRow, SourceStatus } from "#shared/fleet/rows/object-rows.ts";
import { type Row, rowSchema } from "#shared/fleet/rows/row.ts";
import type { Metrics } from "#shared/ports.ts";
import { MemorySender } from "#test/support/memory-sender.ts";
import { allSay, ana, begin, names, playOn, revise, rings, web, worldOf } from "#test/support/planner-story.ts";
import { owner, type PlannerWorld, silentLog } from "#test/support/planner-world.ts";

async function listed(world: PlannerWorld): Promise<PlannerWorld> {
  const entries = [keys.owner(owner), keys.sourceEntry({ namespace: "shop", name: "app" })];
  const row = { type: "Directory", schema: rowSchema, version: 1 };
  await world.table.write(entries.map((key): { put: Row } => ({ put: { ...key, ...row } })));
  return world;
}

const sourceKey = keys.object("shop", "Source", "app");

async function setStatus(world: PlannerWorld, status: Partial<SourceStatus>): Promise<SourceRow> {
  const row = await world.table.get(sourceKey);
  if (row === undefined) throw new Error("there is no Source");
  const next = { ...row, status: { ...row.status, ...status }, version: row.version + 1 };
  await world.table.write([{ put: next }]);
  return next;
}

/** The metrics as `name dimension value`. */
async function metricsOf(world: PlannerWorld): Promise<readonly string[]> {
  const lines: string[] = [];
  const add = (name: string, value: number, dimensions: Readonly<Record<string, string>> = {}) =>
    lines.push(`${[name, ...Object.values(dimensions)].join(" ")} ${value}`);
  const metrics: Metrics = { count: add, seconds: add };
  await takeSurvey({
    table: world.table,
    sender: world.sender,
    clock: { now: () => world.now },
    log: silentLog,
    metrics,
  });
  return lines.sort();
}

async function polled(world: PlannerWorld): Promise<void> {
  await setStatus(world, { attemptedAt: world.now.toISOString() });
}

test("a fleet that runs the newest rollout has only the number of ready targets", async () => {
  const world = await listed(await worldOf(names(3), {}));
  await world.rollOut();
  await world.plan();
  await polled(world);
  expect(await metricsOf(world)).toEqual(["Targets ready 3"]);
});

test("a halted rollout is counted for as long as it is halted, with its failed targets and the age of the waiting revision", async () => {
  const world = await listed(await worldOf({ c1: "canary", c2: "rest", c3: "rest" }, rings));
  await world.rollOut();
  await revise(world, "bbb");
  world.advanceClock(600);
  await allSay(world, "Failed");
  await polled(world);
  const halted = ["HaltedRollouts 1", "OldestRevision 600", "Targets failed 1", "Targets ready 2"];
  expect(await metricsOf(world)).toEqual(halted);
  world.advanceClock(3000);
  expect(await metricsOf(world)).toEqual(halted.with(1, "OldestRevision 3600"));
  // A person who suspends the group knows of it.
  await world.operate({ suspended: ana(world.now) });
  await world.plan();
  expect(await metricsOf(world)).not.toContain("HaltedRollouts 1");
});

test.each([
  { when: "before the push", suspendFirst: true },
  { when: "after it, in the middle of the rollout", suspendFirst: false },
])(
  "a group that was suspended $when has only the age of the suspension, and no age of a waiting revision",
  async ({ suspendFirst }) => {
    const world = await listed(await worldOf({ c1: "canary", c2: "rest", c3: "rest" }, rings));
    await world.rollOut();
    const suspendedAt = world.now;
    if (suspendFirst) await world.operate({ suspended: ana(suspendedAt) });
    await revise(world, "bbb");
    if (!suspendFirst) await world.operate({ suspended: ana(suspendedAt) });
    await world.plan();
    world.advanceClock(7200);
    await world.plan();
    await polled(world);
    const lines = await metricsOf(world);
    expect(lines).toContain("OldestSuspend 7200");
    expect(lines.filter((line) => /OldestRevision|Halted/.test(line))).toEqual([]);
    // The age of a revision that waited for the resume counts from the resume on.
    await world.operate({ resumed: ana(world.now) });
    await begin(world);
    world.advanceClock(60);
    const [oldest = "", ...others] = (await metricsOf(world)).filter((line) => line.startsWith("Oldest"));
    expect({ name: oldest.split(" ")[0], others }).toEqual({ name: "OldestRevision", others: [] });
  },
);

test("the changes that a guard withholds are counted until the selector is taken back", async () => {
  const canary = { selector: { matchLabels: { ring: "canary" } } };
  const guard = { additions: "50%" };
  const fleet = { c1: "canary", c2: "canary", c3: "rest", c4: "rest" };
  const world = await listed(await worldOf(fleet, { maxConcurrent: 20 }, web, canary, guard));
  await world.rollOut();
  await world.plan();
  await polled(world);
  expect(await metricsOf(world)).toEqual(["Targets ready 2"]);
  await world.setGroup({ maxConcurrent: 20 }, web, { all: true }, guard);
  await playOn(world);
  expect(await metricsOf(world)).toContain("WithheldChanges 1");
  await world.setGroup({ maxConcurrent: 20 }, web, canary, guard);
  await playOn(world);
  expect((await metricsOf(world)).filter((line) => line.startsWith("Withheld"))).toEqual([]);
});

test("the age of the longest suspension is counted, also of Sources", async () => {
  const world = await listed(await worldOf(names(1), {}));
  await world.rollOut();
  await world.plan();
  const row = await setStatus(world, { attemptedAt: world.now.toISOString() });
  const put = { ...row, operations: { suspended: { ...ana(world.now), number: 1 } }, version: row.version + 1 };
  await world.table.write([{ put }]);
  world.advanceClock(300);
  await world.operate({ suspended: ana(world.now) });
  world.advanceClock(60);
  expect(await metricsOf(world)).toContain("OldestSuspend 360");
});

test("a suspension that has ended by itself has no age, although nobody has acted since", async () => {
  const world = await listed(await worldOf(names(1), {}));
  await world.rollOut();
  const row = await setStatus(world, { attemptedAt: world.now.toISOString() });
  const until = later(world.now, 300);
  const suspended = { ...ana(world.now), number: 1, until };
  const put = { ...row, operations: { suspended }, version: row.version + 1 };
  await world.table.write([{ put }]);
  world.advanceClock(299);
  expect(await metricsOf(world)).toContain("OldestSuspend 299");
  world.advanceClock(1);
  expect((await metricsOf(world)).filter((line) => line.startsWith("OldestSuspend"))).toEqual([]);
});

test("an unreachable cluster counts as a target in the state unreachable", async () => {
  const world = await listed(await worldOf(names(4), { maxUnreachable: 1 }));
  await begin(world);
  await world.finish("c000", "Unreachable");
  for (const name of names(4).slice(1)) await world.finish(name, "Ready");
  await world.plan();
  await polled(world);
  expect(await metricsOf(world)).toContain("Targets unreachable 1");
});

test.each([
  { is: "could not be polled for an hour", ago: 3600, polledAgo: 0, stale: true },
  { is: "could not be polled for less than an hour", ago: 3599, polledAgo: 0, stale: false },
  { is: "was not polled for its interval and an hour", ago: undefined, polledAgo: 3600 + 300, stale: true },
  { is: "was not polled for less than that", ago: undefined, polledAgo: 3600 + 299, stale: false },
])("a Source that $is: stale is $stale", async ({ ago, polledAgo, stale }) => {
  const world = await listed(await worldOf(names(1), {}));
  const before = (seconds: number) => new Date(world.now.getTime() - seconds * 1000).toISOString();
  const failed = { type: "Ready", status: "False", reason: "GitNotFound", message: "" } as const;
  const row = await setStatus(world, {
    attemptedAt: before(polledAgo),
    conditions: ago === undefined ? [] : [{ ...failed, since: before(ago) }],
  });
  expect(row.spec.interval).toBe("5m");
  expect((await metricsOf(world)).includes("StaleSources 1")).toBe(stale);
  const held = { ...row, operations: { suspended: { ...ana(world.now), number: 1 } }, version: row.version + 1 };
  await world.table.write([{ put: held }]);
  expect(await metricsOf(world)).not.toContain("StaleSources 1");
});

test("the survey is taken when a sandbox begins, and then every five minutes, after the rows that are due", async () => {
  const world = await listed(await worldOf(names(1), {}));
  await world.rollOut();
  await world.plan();
  const lines: string[] = [];
  const add = (name: string) => lines.push(name);
  const sender = new MemorySender();
  const metrics: Metrics = { count: add, seconds: add };
  const alarms = { read: () => Promise.reject(new Error("nothing bakes")) };
  const clock = { now: () => world.now };
  const tick = everyMinute({ table: world.table, sender, clock, log: silentLog, metrics, alarms });
  const minutes: string[] = [];
  for (let minute = 0; minute < 11; minute++) {
    await tick();
    minutes.push(lines.splice(0).join("+"));
    world.advanceClock(60);
  }
  const both = "DueLag+Targets";
  expect(minutes.map((line) => line.replace("+StaleSources", ""))).toEqual([
    both,
    ..."1234".split("").map(() => "DueLag"),
    both,
    ..."1234".split("").map(() => "DueLag"),
    both,
  ]);
});
