import { defined } from "#shared/base/defined.ts";
import { digestOf } from "#shared/base/digest.ts";
import { canonicalJson } from "#shared/base/json.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { noTargets, refOf } from "#shared/fleet/rollout/legs.ts";
import { desiredPlan, identityOf, relationOf } from "#shared/fleet/rollout/plan.ts";
import { keys, type Subject, stateIndex } from "#shared/fleet/rows/keys.ts";
import { type Artifact, newestAct, type SourceRow, type SubjectRow } from "#shared/fleet/rows/object-rows.ts";
import type {
  ContentRow,
  LegRef,
  LegRow,
  SlotRow,
  TargetRow,
  TargetState,
  UnitRow,
  UnitStage,
} from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer, type Row } from "#shared/fleet/rows/row.ts";
import type { Phase, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Table } from "#shared/ports.ts";
import type { MemoryBlobStore } from "#test/support/memory-blob-store.ts";

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
    stateSk: stateIndex.sk(phase, { cluster, name }),
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

export function contentRow(number: number, change: Partial<ContentRow> = {}): ContentRow {
  const { subject = shop } = change;
  return {
    ...keys.content(subject, number),
    ...row,
    type: "Content",
    subject,
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
      contentHash: "sha256:c0",
    },
    revision: "main@sha1:9f2c1ab",
    trigger: "plan",
    createdAt: "2026-11-20T07:45:00.000Z",
    ...change,
  };
}

/** A leg with targets in these states, in their order. */
export function legRow(
  { content, stage, seal = 0 }: Omit<LegRef, "seal"> & { readonly seal?: number },
  states: readonly TargetState[],
  change: Partial<LegRow> = {},
): LegRow {
  const { subject = shop } = change;
  const counts: Record<TargetState, number> = { ...noTargets };
  for (const state of states) counts[countedAs(state)]++;
  const isOpen = counts.Waiting + counts.Rendering + counts.Assigned > 0;
  const next = states.findLastIndex((state) => state !== "Waiting") + 1;
  const ordersOf = (wanted: TargetState) =>
    states.flatMap((state, order) => (state === wanted && order < next ? [order] : []));
  return {
    ...keys.leg(subject, { content, stage, seal }),
    ...row,
    type: "Leg",
    subject,
    content,
    stage,
    seal,
    phase: isOpen ? "Moving" : "Passed",
    reason: isOpen ? "Moving" : "Passed",
    message: isOpen ? `stage ${stage} goes on` : `stage ${stage} passed`,
    size: states.length,
    pages: [],
    membersVersion: 1,
    next,
    rendering: ordersOf("Rendering"),
    aside: [],
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
  leg: LegRow,
  { order, cluster }: Pick<TargetRow, "order" | "cluster">,
  change: Partial<SlotRow> = {},
): SlotRow {
  return {
    ...keys.slot(leg.subject, cluster),
    ...row,
    type: "Slot",
    cluster,
    leg: refOf(leg),
    order,
    stage: leg.stage,
    content: leg.content,
    attempts: { [`${leg.subject.name}.web`]: 2 },
    since: "2026-11-20T07:50:00.000Z",
    ...change,
  };
}

function targetRow(leg: LegRow, { order, cluster, state }: Pick<TargetRow, "order" | "cluster" | "state">): TargetRow {
  return {
    ...keys.target(leg.subject, leg, cluster),
    ...row,
    type: "Target",
    leg: refOf(leg),
    order,
    cluster,
    state,
    reason: state === "Failed" ? "ApplyFailed: 1 of 4 objects failed" : "",
    attempts: { [`${leg.subject.name}.web`]: 2 },
    endedAt: "2026-11-20T07:52:00.000Z",
  };
}

export function unitRow(stages: readonly UnitStage[], change: Partial<UnitRow> = {}): UnitRow {
  const { subject = shop } = change;
  const last = Math.max(0, ...stages.flatMap(({ on = 0, moving }) => [on, moving?.content ?? 0]));
  return {
    ...keys.unit(subject),
    ...row,
    type: "Unit",
    subject,
    uid: "uid-of-the-subject",
    last,
    seals: last,
    stages,
    arrivals: { waiting: 0, changing: 0, failed: 0 },
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

/** A stage as its leg leaves it: moving, or on the content that it passed. */
export function unitStage(leg: LegRow, change: Partial<UnitStage> = {}): UnitStage {
  const { content, stage: name, size: members, counts, phase } = leg;
  const place = phase === "Passed" ? { on: content, passed: refOf(leg) } : { moving: refOf(leg) };
  return { name, members, changing: counts.Assigned, failedArrivals: 0, ...place, ...change };
}

export interface StoredRollout {
  readonly number: number;
  /** Targets by stage, in the order of stages; clusters are `c1` and on, through all of them. */
  readonly states: Readonly<Record<string, readonly TargetState[]>>;
  readonly subject?: Subject;
  /** Of the legs, by stage. */
  readonly legs?: Readonly<Record<string, Partial<LegRow>>>;
  readonly content?: Partial<ContentRow>;
  readonly unit?: Partial<UnitRow>;
}

/** Everything that the planner leaves of a content that is the newest of its subject; what was there before stays. */
export async function storeRollout(
  { table, blobs }: { readonly table: Table; readonly blobs: MemoryBlobStore },
  { number, states, subject = shop, legs: changes = {}, content, unit }: StoredRollout,
): Promise<readonly LegRow[]> {
  const legs: LegRow[] = [];
  const rows: Row[] = [contentRow(number, { subject, ...content })];
  let first = 1;
  for (const [stage, own] of Object.entries(states)) {
    const clusters = own.map((_, order) => `c${first + order}`);
    first += own.length;
    const list = clusters.map((cluster) => ({ cluster, uid: `uid-${cluster}`, inputs: [] }));
    const key = blobKeys.members(digestOf(list));
    await blobs.overwrite(key, Buffer.from(canonicalJson(list)));
    const leg = legRow({ content: number, stage }, own, { subject, pages: [{ key, first: 0 }], ...changes[stage] });
    legs.push(leg);
    rows.push(leg);
    for (const [order, state] of own.entries()) {
      const target = { order, cluster: clusters[order] ?? "", state };
      if (countedAs(state) === "Assigned") rows.push(slotRow(leg, target));
      else if (state !== "Waiting" && state !== "Rendering") rows.push(targetRow(leg, target));
    }
  }
  const { namespace, kind, name } = subject;
  const [object, before] = await Promise.all([
    table.get(keys.object(namespace, kind, name)),
    table.get(keys.unit(subject)),
  ]);
  const stages = legs.map((leg) => {
    const known = before?.stages.find((stage) => stage.name === leg.stage);
    return { ...(known?.on === undefined ? {} : { on: known.on }), ...unitStage(leg) };
  });
  const made = unitRow(stages, { subject, ...(object === undefined ? {} : { uid: object.uid }), ...unit });
  for (const put of [...rows, made]) await table.write([{ put }]);
  if (object !== undefined && !isNewer(object)) await saySeen(object, table);
  return legs;
}

/** What the Source has is what the newest content was made of: nothing else is wanted. */
export async function sayTaken(table: Table, { kind, namespace, name }: Subject, artifact: Artifact): Promise<void> {
  const object = await table.get(keys.object(namespace, kind, name));
  const unit = await table.get(keys.unit({ kind, namespace, name }));
  if (object === undefined || unit === undefined) throw new Error("they were stored");
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
  const identity = identityOf(desired.plan, { inputsVersion: 0, recovered: undefined });
  const ledger = unit.ledger.map((entry) => (entry.number === unit.last ? { ...entry, identity } : entry));
  await table.write([{ update: keys.unit(unit.subject), set: { ledger } }]);
}

/** The planner has taken up what the subject is now, and its Sources were looked at. */
async function saySeen(object: SubjectRow, table: Table): Promise<void> {
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
