/** A cluster with drift that stays is not a ready cluster of its group, and the group does not wait for it. */
import { expect, test } from "vitest";
import { stateIndex } from "#shared/fleet/rows/keys.ts";
import { worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

/** Writes what a worker writes when it finds drift and leaves it, or finds that the drift is gone. */
async function sayDrift(made: PlannerWorld, cluster: string, status: "True" | "False"): Promise<void> {
  const row = await made.sync(cluster);
  if (row?.observed === undefined) throw new Error(`nothing was seen on ${cluster}`);
  const since = made.now.toISOString();
  const conditions = [{ type: "Drifted", status, reason: "DriftDetected", message: "", since }] as const;
  const stateSk = stateIndex.sk(status === "True" ? "Drifted" : "Ready", row);
  const put = { ...row, observed: { ...row.observed, conditions }, version: row.version + 1, stateSk };
  await made.table.write([{ put, when: { version: row.version } }]);
}

async function settled(made: PlannerWorld) {
  made.advanceClock(60);
  await made.plan();
  const { state, clusters, conditions } = (await made.group()).status;
  const { status, message } = conditions.find(({ type }) => type === "Ready") ?? {};
  return { state, clusters, ready: status, message };
}

const none = { changing: 0, failed: 0, unreachable: 0, waiting: 0 };

test("a group counts a cluster with drift that stays apart from ready clusters, and its state is Drifted", async () => {
  const made = await worldOf(["a", "b", "c"], {});
  await made.rollOut();
  await sayDrift(made, "b", "True");
  expect(await settled(made)).toEqual({
    state: "Drifted",
    clusters: { ...none, selected: 3, ready: 2, drifted: 1 },
    ready: "True",
    message: "2 of 3 clusters ready, 1 with drift that stays",
  });
});

test("a group whose drift is gone is Complete again", async () => {
  const made = await worldOf(["a", "b"], {});
  await made.rollOut();
  await sayDrift(made, "b", "True");
  await settled(made);
  await sayDrift(made, "b", "False");
  expect(await settled(made)).toMatchObject({
    state: "Complete",
    clusters: { ...none, selected: 2, ready: 2 },
    ready: "True",
  });
});

test("a group with a failed cluster and a drifted cluster is Degraded, and counts both", async () => {
  const made = await worldOf(["a", "b", "c"], {});
  await made.rollOut();
  await sayDrift(made, "b", "True");
  await made.observe("c", "Failed");
  expect(await settled(made)).toMatchObject({
    state: "Degraded",
    clusters: { ...none, selected: 3, ready: 1, drifted: 1, failed: 1 },
    ready: "False",
  });
});

test("a rollout goes through a group with drift as through any other group", async () => {
  const made = await worldOf(["a", "b", "c"], { maxConcurrent: 1 });
  await made.rollOut();
  await sayDrift(made, "b", "True");
  await settled(made);
  await made.setSource("second");
  await made.rollOut();
  expect(await settled(made)).toMatchObject({ state: "Complete", clusters: { ...none, selected: 3, ready: 3 } });
});
