import { describe, expect, test } from "vitest";
import { subjectStatus } from "#shared/domain/rollout/subject-status.ts";
import type { SubjectState, SubjectStatus } from "#shared/domain/rows/object-rows.ts";
import { PlannerWorld } from "#test/support/planner-world.ts";

const now = new Date("2026-11-21T09:00:00.000Z");
const act = { by: "ana", at: "2026-11-21T08:30:00.000Z" };
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
    ["a cluster is not ready", { now, settled: { ...counts, ready: 2, failed: 1 } }, {}, "Complete", "Degraded"],
    ["nothing was ever rolled out", { now }, {}, "Complete", "Degraded"],
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
    expect(status.observedOperation).toBe(Object.keys(operations).length === 0 ? undefined : act.at);
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
