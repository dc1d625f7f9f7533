import { describe, expect, test } from "vitest";
import { subjectStatus } from "#shared/fleet/rollout/subject-status.ts";
import type { SubjectState, SubjectStatus } from "#shared/fleet/rows/object-rows.ts";
import { PlannerWorld } from "#test/support/planner-world.ts";

const now = new Date("2026-11-21T09:00:00.000Z");
const act = { by: "ana", at: "2026-11-21T08:30:00.000Z", number: 3 };
const asked = { number: 2, answered: false };
const none = { selected: 0, ready: 0, changing: 0, failed: 0, unreachable: 0, waiting: 0 };
const counts = { selected: 3, ready: 3, changing: 0, failed: 0, unreachable: 0, waiting: 0 };

/** Three clusters: one ready, one changing, one waiting. */
async function world(): Promise<PlannerWorld> {
  const made = new PlannerWorld();
  for (const name of ["a", "b", "c"]) await made.addCluster(name, "all");
  await made.setSource("aaa");
  await made.setGroup({ maxConcurrent: 1 });
  await made.plan();
  await made.renderAll();
  await made.plan();
  await made.observe("a", "Ready");
  await made.plan();
  return made;
}

describe("the status of a subject", () => {
  test("counts every selected cluster once while a rollout is open", async () => {
    const made = await world();
    const row = await made.group();
    expect(subjectStatus(row, { now, rollout: made.newest() })).toEqual({
      observedGeneration: 1,
      revision: "main@sha1:aaa",
      rollout: 1,
      state: "Rolling",
      clusters: { selected: 3, ready: 1, changing: 1, failed: 0, unreachable: 0, waiting: 1 },
      asOf: now.toISOString(),
      conditions: [
        {
          type: "Ready",
          status: "False",
          reason: "Rolling",
          message: "1 of 3 clusters ready",
          since: expect.any(String),
        },
      ],
    });
  });

  test("counts clusters that the rollout does not move as ready", async () => {
    const made = await world();
    const rollout = { ...made.newest(), selected: 10 };
    expect(subjectStatus(await made.group(), { now, rollout }).clusters).toMatchObject({ selected: 10, ready: 8 });
  });

  test.each<[string, Parameters<typeof subjectStatus>[1], object, SubjectState, string]>([
    ["nothing is left to do", { now, settled: counts }, {}, "Complete", "AllClustersReady"],
    ["a cluster is not ready", { now, settled: { ...counts, ready: 2, failed: 1 } }, {}, "Degraded", "Degraded"],
    ["a cluster changes", { now, settled: { ...counts, ready: 2, changing: 1 } }, {}, "Reconciling", "Reconciling"],
    [
      "one of those named is not registered",
      { now, settled: counts, missing: ["x"] },
      {},
      "Degraded",
      "ClusterNotFound",
    ],
    ["nothing matches", { now, settled: none }, {}, "NoClusters", "NoClusters"],
    [
      "nothing that is named is there",
      { now, settled: none, missing: ["x"] },
      {},
      "ClusterNotFound",
      "ClusterNotFound",
    ],
    ["nothing was ever rolled out", { now }, {}, "Waiting", "NothingRolledOut"],
    ["a look was asked for", { now, settled: counts, reconcile: asked }, {}, "Reconciling", "Reconciling"],
    [
      "it was answered",
      { now, settled: counts, reconcile: { ...asked, answered: true } },
      {},
      "Complete",
      "AllClustersReady",
    ],
    [
      "a Source is missing",
      { now, waiting: { ok: false, reason: "SourceNotFound", message: "no Source" } },
      {},
      "Waiting",
      "SourceNotFound",
    ],
    ["it is suspended", { now, settled: counts }, { suspended: act }, "Suspended", "Suspended"],
    [
      "it is being deleted",
      { now, settled: counts },
      { deletion: { ...act, cascade: "delete" } },
      "Deleting",
      "Deleting",
    ],
    [
      "it is suspended while it is being deleted",
      { now },
      { suspended: act, deletion: { ...act, cascade: "delete" } },
      "Suspended",
      "Suspended",
    ],
  ])("when %s", async (_name, facts, operations, state, reason) => {
    const made = await world();
    const row = { ...(await made.group()), operations, status: { conditions: [] } };
    const status = subjectStatus(row, facts);
    expect(status.state).toBe(state);
    expect(status.conditions).toMatchObject([
      { type: "Ready", reason, status: reason === "AllClustersReady" ? "True" : "False" },
    ]);
    expect(status.observedOperation).toBe(Object.keys(operations).length === 0 ? undefined : 3);
  });

  test("says why a rollout has halted, and for what it stalls", async () => {
    const made = await world();
    const row = await made.group();
    const halted = { ...made.newest(), phase: "Halted" as const, message: "1 cluster failed" };
    expect(subjectStatus(row, { now, rollout: halted })).toMatchObject({
      state: "Halted",
      conditions: [{ reason: "Halted", message: "1 cluster failed" }],
    });
    const stalled = { ...made.newest(), reason: "TooManyUnreachable" };
    expect(subjectStatus(row, { now, rollout: stalled }).state).toBe("Stalled");
  });

  test("keeps what it knew when it is told nothing new, and since when", async () => {
    const made = await world();
    const since = "2026-11-20T00:00:00.000Z";
    const before: SubjectStatus = {
      revision: "r",
      rollout: 7,
      clusters: counts,
      conditions: [{ type: "Ready", status: "True", reason: "AllClustersReady", message: "", since }],
    };
    const row = { ...(await made.group()), status: before };
    expect(subjectStatus(row, { now, settled: counts })).toMatchObject({
      revision: "r",
      rollout: 7,
      clusters: counts,
      conditions: [{ since }],
    });
    const worse = subjectStatus(row, { now, settled: { ...counts, ready: 0 } });
    expect(worse.conditions).toMatchObject([{ status: "False", since: now.toISOString() }]);
  });
});

describe("what is said of", () => {
  const parked = (...names: readonly string[]) => names.map((cluster, order) => ({ order, cluster }));
  const group = { selector: { matchLabels: { ring: "canary" } } };

  test("a rollout that is over is not that all is well: it names those it moved", async () => {
    const made = await world();
    const rollout = { ...made.newest(), phase: "Complete" as const };
    expect(subjectStatus(await made.group(), { now, rollout })).toMatchObject({
      state: "Rolling",
      conditions: [{ status: "False" }],
    });
  });

  test("an empty selection names it", async () => {
    const made = await world();
    await made.setGroup({}, undefined, group);
    const { conditions } = subjectStatus(await made.group(), { now, settled: none });
    expect(conditions[0]?.message).toBe(
      "no registered cluster matches ring=canary; nothing is rolled out until one does",
    );
  });

  test("clusters that are not registered names them", async () => {
    const made = await world();
    const row = await made.group();
    const message = (missing: readonly string[], settled = none) =>
      subjectStatus(row, { now, settled, missing }).conditions[0]?.message;
    expect(message(["x"])).toBe("cluster x is not registered; nothing is rolled out until it is");
    expect(message(["x", "y"])).toBe("clusters x, y are not registered; nothing is rolled out until one is");
    expect(message(["d", "e", "f", "g"], counts)).toBe(
      "3 of 3 clusters ready; clusters d, e, f and 1 more are not registered",
    );
  });

  test("a deletion that waits names for whom, and how to go on without", async () => {
    const made = await world();
    const row = { ...(await made.group()), operations: { deletion: { ...act, cascade: "delete" as const } } };
    const rollout = { ...made.newest(), parked: parked("b", "c") };
    expect(subjectStatus(row, { now, rollout })).toMatchObject({
      state: "Deleting",
      conditions: [
        {
          message:
            "1 of 3 clusters done; b, c do not answer, and the deletion waits; to go on without: starling delete cluster/b --cascade=orphan",
        },
      ],
    });
  });

  test("a reconcile that was answered is remembered", async () => {
    const made = await world();
    const answered = subjectStatus(await made.group(), {
      now,
      settled: counts,
      reconcile: { number: 4, answered: true },
    });
    expect(answered.reconciled).toBe(4);
    const row = { ...(await made.group()), status: answered };
    expect(subjectStatus(row, { now, settled: counts }).reconciled).toBe(4);
    expect(subjectStatus(row, { now, settled: counts, reconcile: { number: 5, answered: false } }).reconciled).toBe(4);
  });
});
