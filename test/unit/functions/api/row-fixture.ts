import { keys, type Subject, stateIndex } from "#shared/fleet/rows/keys.ts";
import type { HeadRow, RolloutRow, TargetRow, TargetState } from "#shared/fleet/rows/rollout-rows.ts";
import { targetStates } from "#shared/fleet/rows/rollout-rows.ts";
import type { Phase, SyncRow } from "#shared/fleet/rows/sync-row.ts";

const row = { schema: 1, version: 1 } as const;
export const shop: Subject = { namespace: "payments", kind: "SyncGroup", name: "shop" };

/** A Sync on a cluster as planner and worker leave it. */
export function syncRow(
  cluster: string,
  name: string,
  observed: { readonly phase?: Phase; readonly reason?: string; readonly message?: string } = {},
): SyncRow {
  const phase = observed.phase ?? "Ready";
  const [group = name] = name.split(".");
  const subject: Subject = { namespace: "payments", kind: name.includes(".") ? "SyncGroup" : "Sync", name: group };
  return {
    ...keys.sync(cluster, "payments", name),
    ...row,
    type: "SyncOnCluster",
    statePk: stateIndex.pk(subject),
    stateSk: `${phase}#${cluster}#${name}`,
    cluster,
    namespace: "payments",
    name,
    uid: `uid-${cluster}-${name}`,
    subject,
    subjectUid: "uid-of-the-subject",
    desired: {
      action: "apply",
      attempt: 2,
      token: "token-2",
      revision: "main@sha1:9f2c1ab",
      renderDigest: "sha256:77ab",
      apply: { prune: true, drift: "correct", interval: "10m" },
      rollout: 12,
      assignedAt: "2026-11-20T07:50:00.000Z",
    },
    observed: {
      attempt: 2,
      phase,
      reason: observed.reason ?? "Current",
      message: observed.message ?? "",
      startedAt: "2026-11-20T07:50:05.000Z",
      since: "2026-11-20T07:51:00.000Z",
      at: "2026-11-20T07:59:00.000Z",
      tries: 0,
      objects: { total: 4, ready: phase === "Ready" ? 4 : 3, failed: phase === "Failed" ? 1 : 0, foreign: 0 },
      troubles: [],
      fence: 1,
      conditions: [],
    },
  };
}

export function headRow(last: number): HeadRow {
  return { ...keys.head(shop), ...row, type: "Head", subject: shop, last, templates: ["web"], behind: [] };
}

/** A rollout of two stages: one target in `canary`, the rest in `rest`. */
export function rolloutRow(number: number, targets: readonly TargetState[]): RolloutRow {
  const counts = (states: readonly TargetState[]) =>
    Object.fromEntries(targetStates.map((state) => [state, states.filter((other) => other === state).length]));
  return {
    ...keys.rollout(shop, number),
    ...row,
    type: "Rollout",
    subject: shop,
    number,
    phase: "Running",
    reason: "Rolling",
    message: "",
    plan: {
      templates: [
        {
          name: "web",
          source: "app",
          revision: "main@sha1:9f2c1ab",
          artifactDigest: "sha256:11",
          path: ".",
          apply: { prune: true, drift: "correct", interval: "10m" },
        },
      ],
      removed: [],
      contentHash: "sha256:c0",
    },
    strategy: {
      maxConcurrent: 2,
      maxFailures: 0,
      maxUnreachable: "10%",
      progressDeadline: "10m",
      stages: [{ name: "canary", clusters: { names: ["c1"] } }, { name: "rest" }],
    },
    membershipHash: "sha256:aa",
    members: "members/aa.json",
    size: targets.length,
    planned: targets.length,
    stages: [
      { name: "canary", size: 1, first: 0, last: 0, cursor: 1, counts: counts(targets.slice(0, 1)) },
      {
        name: "rest",
        size: targets.length - 1,
        first: 1,
        last: targets.length - 1,
        cursor: 1,
        counts: counts(targets.slice(1)),
      },
    ] as unknown as RolloutRow["stages"],
    stage: 1,
    outstanding: [],
    parked: [],
    returned: [],
    left: [],
    carried: [],
    selected: targets.length,
    trigger: "plan",
    revision: "main@sha1:9f2c1ab",
    createdAt: "2026-11-20T07:45:00.000Z",
    failures: [],
    preexistingFailures: 0,
    transitions: [],
  };
}

export function targetRow(number: number, target: { readonly order: number; readonly state: TargetState }): TargetRow {
  const cluster = `c${target.order + 1}`;
  return {
    ...keys.target(shop, number, { order: target.order, cluster }),
    ...row,
    type: "Target",
    order: target.order,
    cluster,
    stage: target.order === 0 ? 0 : 1,
    state: target.state,
    reason: target.state === "Failed" ? "ApplyFailed: 1 of 4 objects failed" : "",
    inputs: [],
    attempts: target.state === "Waiting" ? {} : { "shop.web": 2 },
  };
}
