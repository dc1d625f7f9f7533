import { defined } from "#shared/base/defined.ts";
import { digestOf } from "#shared/base/digest.ts";
import { canonicalJson } from "#shared/base/json.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { desiredPlan, planIdentity, relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import { noTargets, refOf } from "#shared/fleet/rollout/stage-runs.ts";
import { keys, type Owner, stateIndex } from "#shared/fleet/rows/keys.ts";
import { type Artifact, newestAct, type OwnerRow, type SourceRow } from "#shared/fleet/rows/object-rows.ts";
import type {
  RolloutRow,
  RolloutStateRow,
  SlotRow,
  StageRecord,
  StageRunRef,
  StageRunRow,
  TargetRow,
  TargetState,
} from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer, type Row } from "#shared/fleet/rows/row.ts";
import type { Phase, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Table } from "#shared/ports.ts";
import type { MemoryBlobStore } from "#test/support/memory-blob-store.ts";

const row = { schema: 1, version: 1 } as const;
export const shop: Owner = { namespace: "payments", kind: "SyncGroup", name: "shop" };

/** The row of a Sync on a cluster, as planner and worker leave it. */
export function syncRow(
  cluster: string,
  name: string,
  observed: { readonly phase?: Phase; readonly reason?: string; readonly message?: string } = {},
): SyncRow {
  const phase = observed.phase ?? "Ready";
  const [group = name] = name.split(".");
  const owner: Owner = { namespace: "payments", kind: name.includes(".") ? "SyncGroup" : "Sync", name: group };
  return {
    ...keys.sync(cluster, "payments", name),
    ...row,
    type: "SyncOnCluster",
    statePk: stateIndex.pk(owner),
    stateSk: stateIndex.sk(phase, { cluster, name }),
    cluster,
    namespace: "payments",
    name,
    uid: `uid-${cluster}-${name}`,
    owner,
    ownerUid: "uid-of-the-owner",
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
      problems: [],
      fence: 1,
      conditions: [],
    },
  };
}

export function rolloutRow(number: number, change: Partial<RolloutRow> = {}): RolloutRow {
  const { owner = shop } = change;
  return {
    ...keys.rollout(owner, number),
    ...row,
    type: "Rollout",
    owner,
    number,
    identity: `sha256:${number}`,
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
      planHash: "sha256:c0",
    },
    revision: "main@sha1:9f2c1ab",
    trigger: "plan",
    createdAt: "2026-11-20T07:45:00.000Z",
    ...change,
  };
}

/** A stage run with targets in these states, in their order. */
export function stageRunRow(
  { rollout, stage, snapshot = 0 }: Omit<StageRunRef, "snapshot"> & { readonly snapshot?: number },
  states: readonly TargetState[],
  change: Partial<StageRunRow> = {},
): StageRunRow {
  const { owner = shop } = change;
  const counts: Record<TargetState, number> = { ...noTargets };
  for (const state of states) counts[countedAs(state)]++;
  const isOpen = counts.Waiting + counts.Rendering + counts.Assigned > 0;
  const next = states.findLastIndex((state) => state !== "Waiting") + 1;
  const ordersOf = (desired: TargetState) =>
    states.flatMap((state, order) => (state === desired && order < next ? [order] : []));
  return {
    ...keys.stageRun(owner, { rollout, stage, snapshot }),
    ...row,
    type: "StageRun",
    owner,
    rollout,
    stage,
    snapshot,
    phase: isOpen ? "Updating" : "Passed",
    reason: isOpen ? "Updating" : "Passed",
    message: isOpen ? `stage ${stage} goes on` : `stage ${stage} passed`,
    size: states.length,
    pages: [],
    membersVersion: 1,
    next,
    holds: counts.Rendering === 0 ? [] : [{ cause: "rendering", clusters: ordersOf("Rendering") }],
    returned: ordersOf("Waiting"),
    unrendered: [],
    counts,
    preexistingFailures: 0,
    failures: [],
    away: [],
    startedAt: "2026-11-20T07:46:00.000Z",
    ...(isOpen ? {} : { endedAt: "2026-11-20T07:51:00.000Z" }),
    transitions: [],
    ...change,
  };
}

function countedAs(state: TargetState): TargetState {
  return state === "Applying" || state === "Verifying" ? "Assigned" : state;
}

export function slotRow(
  stageRun: StageRunRow,
  { order, cluster }: Pick<TargetRow, "order" | "cluster">,
  change: Partial<SlotRow> = {},
): SlotRow {
  return {
    ...keys.slot(stageRun.owner, cluster),
    ...row,
    type: "Slot",
    cluster,
    stageRun: refOf(stageRun),
    order,
    stage: stageRun.stage,
    rollout: stageRun.rollout,
    attempts: { [`${stageRun.owner.name}.web`]: 2 },
    since: "2026-11-20T07:50:00.000Z",
    ...change,
  };
}

function targetRow(
  stageRun: StageRunRow,
  { order, cluster, state }: Pick<TargetRow, "order" | "cluster" | "state">,
): TargetRow {
  return {
    ...keys.target(stageRun.owner, stageRun, cluster),
    ...row,
    type: "Target",
    stageRun: refOf(stageRun),
    order,
    cluster,
    state,
    reason: state === "Failed" ? "ApplyFailed: 1 of 4 objects failed" : "",
    attempts: { [`${stageRun.owner.name}.web`]: 2 },
    endedAt: "2026-11-20T07:52:00.000Z",
  };
}

export function rolloutStateRow(
  stages: readonly StageRecord[],
  change: Partial<RolloutStateRow> = {},
): RolloutStateRow {
  const { owner = shop } = change;
  const last = Math.max(0, ...stages.flatMap(({ current = 0, updatingTo }) => [current, updatingTo?.rollout ?? 0]));
  return {
    ...keys.rolloutState(owner),
    ...row,
    type: "RolloutState",
    owner,
    uid: "uid-of-the-owner",
    last,
    snapshots: last,
    stages,
    catchUps: { waiting: 0, changing: 0, failed: 0 },
    ledger: Array.from({ length: last }, (_, index) => ({
      number: last - index,
      identity: `sha256:${last - index}`,
      revision: "main@sha1:9f2c1ab",
      at: "2026-11-20T07:45:00.000Z",
    })),
    templates: ["web"],
    membersVersion: 1,
    inputsVersion: 0,
    jobs: [],
    ...change,
  };
}

/** The record of a stage as its stage run leaves it: updating, or with the rollout that it passed. */
export function stageRecord(stageRun: StageRunRow, change: Partial<StageRecord> = {}): StageRecord {
  const { rollout, stage: name, size: members, counts, phase } = stageRun;
  const place = phase === "Passed" ? { current: rollout, passed: refOf(stageRun) } : { updatingTo: refOf(stageRun) };
  return { name, members, changing: counts.Assigned, failedCatchUps: 0, ...place, ...change };
}

export interface StoredRollout {
  readonly number: number;
  /** Targets by stage, in the order of stages; clusters are `c1` and on, through all of them. */
  readonly states: Readonly<Record<string, readonly TargetState[]>>;
  readonly owner?: Owner;
  /** Changes of the stage runs, by stage. */
  readonly stageRuns?: Readonly<Record<string, Partial<StageRunRow>>>;
  readonly rollout?: Partial<RolloutRow>;
  readonly rolloutState?: Partial<RolloutStateRow>;
}

/** Stores every row that the planner leaves of a group's newest rollout; earlier rows stay. */
export async function storeRollout(
  { table, blobs }: { readonly table: Table; readonly blobs: MemoryBlobStore },
  { number, states, owner = shop, stageRuns: changes = {}, rollout, rolloutState }: StoredRollout,
): Promise<readonly StageRunRow[]> {
  const stageRuns: StageRunRow[] = [];
  const rows: Row[] = [rolloutRow(number, { owner, ...rollout })];
  let first = 1;
  for (const [stage, own] of Object.entries(states)) {
    const clusters = own.map((_, order) => `c${first + order}`);
    first += own.length;
    const list = clusters.map((cluster) => ({ cluster, uid: `uid-${cluster}`, inputs: [] }));
    const key = blobKeys.members(digestOf(list));
    await blobs.overwrite(key, Buffer.from(canonicalJson(list)));
    const stageRun = stageRunRow({ rollout: number, stage }, own, {
      owner,
      pages: [{ key, first: 0 }],
      ...changes[stage],
    });
    stageRuns.push(stageRun);
    rows.push(stageRun);
    for (const [order, state] of own.entries()) {
      const target = { order, cluster: clusters[order] ?? "", state };
      if (countedAs(state) === "Assigned") rows.push(slotRow(stageRun, target));
      else if (state !== "Waiting" && state !== "Rendering") rows.push(targetRow(stageRun, target));
    }
  }
  const { namespace, kind, name } = owner;
  const [object, before] = await Promise.all([
    table.get(keys.object(namespace, kind, name)),
    table.get(keys.rolloutState(owner)),
  ]);
  const stages = stageRuns.map((stageRun) => {
    const known = before?.stages.find((stage) => stage.name === stageRun.stage);
    return { ...(known?.current === undefined ? {} : { current: known.current }), ...stageRecord(stageRun) };
  });
  const made = rolloutStateRow(stages, {
    owner,
    ...(object === undefined ? {} : { uid: object.uid }),
    ...rolloutState,
  });
  for (const put of [...rows, made]) await table.write([{ put }]);
  if (object !== undefined && !isNewer(object)) await saySeen(object, table);
  return stageRuns;
}

/** The Source has the artifact of the newest rollout: nothing else is desired. */
export async function sayTaken(table: Table, { kind, namespace, name }: Owner, artifact: Artifact): Promise<void> {
  const object = await table.get(keys.object(namespace, kind, name));
  const rolloutState = await table.get(keys.rolloutState({ kind, namespace, name }));
  if (object === undefined || rolloutState === undefined) throw new Error("they were stored");
  const sources = new Map<string, SourceRow>();
  for (const { source } of relationOf(object).templates) {
    const key = keys.object(namespace, "Source", source);
    const row = await table.get(key);
    if (row === undefined) throw new Error(`Source ${source} was applied`);
    const status = { ...row.status, artifact };
    await table.write([{ update: key, set: { status } }]);
    sources.set(source, { ...row, status });
  }
  const desired = desiredPlan(object, sources);
  if (!desired.ok) throw new Error(desired.message);
  const identity = planIdentity(desired.plan, { inputsVersion: 0, recovered: undefined });
  const ledger = rolloutState.ledger.map((entry) =>
    entry.number === rolloutState.last ? { ...entry, identity } : entry,
  );
  await table.write([{ update: keys.rolloutState(rolloutState.owner), set: { ledger } }]);
}

/** The planner has observed the group's present generation, and its Sources were polled. */
async function saySeen(object: OwnerRow, table: Table): Promise<void> {
  const seen = {
    observedGeneration: object.generation,
    ...defined({ observedOperation: newestAct(object.operations) }),
  };
  const { pk, sk } = object;
  await table.write([{ update: { pk, sk }, set: { status: { ...object.status, ...seen } } }]);
  for (const { source } of relationOf(object).templates) {
    const key = keys.object(object.namespace, "Source", source);
    const row = await table.get(key);
    if (row === undefined) continue;
    await table.write([{ update: key, set: { status: { ...row.status, observedGeneration: row.generation } } }]);
  }
}
