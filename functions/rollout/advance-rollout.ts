import { askRenderings } from "#functions/rollout/ask-renderings.ts";
import type { PlannerPorts, Step } from "#functions/rollout/planner-ports.ts";
import type { Known } from "#functions/rollout/read-subject.ts";
import { subjectWrite } from "#functions/rollout/subject-write.ts";
import { allPages } from "#shared/base/all-pages.ts";
import { digestOf } from "#shared/base/digest.ts";
import { selects } from "#shared/fleet/kinds/cluster-selection.ts";
import { advance, nextDeadline } from "#shared/fleet/rollout/advance.ts";
import type { Assignment } from "#shared/fleet/rollout/decision.ts";
import { type Hold, holdsOf } from "#shared/fleet/rollout/holds.ts";
import { relationOf } from "#shared/fleet/rollout/plan.ts";
import { type Freeze, freezeOfAll, isReleased } from "#shared/fleet/rows/brake-row.ts";
import { due, dueAtOf, later, watchdogAt } from "#shared/fleet/rows/due.ts";
import { clusterOf, keys, ranges, stateIndex, syncName } from "#shared/fleet/rows/keys.ts";
import { nextDesired } from "#shared/fleet/rows/lineage.ts";
import { type FleetRow, isUnplanned } from "#shared/fleet/rows/object-rows.ts";
import type { HeadRow, RolloutRow, TargetRef, TargetRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer, keyText, type NewerRow, newerRowText, rowSchema } from "#shared/fleet/rows/row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { withWorkerHalf } from "#shared/fleet/rows/worker-half.ts";
import type { Message } from "#shared/messages.ts";
import type { Table, Write } from "#shared/ports.ts";

/** Rows of targets, assignments, removals and checks in one transaction; three more go with them. */
const room = 96;
/** Waiting targets looked at in one step: as many as may give their slots back, so that one batch of keys is enough. */
const fewestNext = 20;
const mostNext = 100;
/** Unreachable clusters are asked about this often when nothing else happens. */
const parkedSeconds = 60;

/** One step of an open rollout: what the clusters show is taken in, and free slots are given to the next in line. */
export async function advanceRollout(known: Known, stored: RolloutRow, ports: PlannerPorts): Promise<Step> {
  const now = ports.clock.now();
  const rollout = stored.phase === "Sealed" ? running(stored, now) : stored;
  const freeze = freezeOfAll(known.brake, now);
  const targets = await readTargets(rollout, { freeze, table: ports.table });
  const observations = await readObservations(known, { rollout, targets, now }, ports.table);
  const decision = advance(
    {
      rollout,
      suspended: known.row.operations.suspended !== undefined,
      freeze,
      completed: known.head?.completed,
      targets,
    },
    observations,
    { now, room: room },
  );
  const asking = { subject: known.subject, requests: decision.requests, renderings: observations.renderings };
  const requested = await askRenderings(asking, ports);
  const seen = !isUnplanned(known.row) && known.row.dueKey === undefined;
  const given = new Map(targets.map((target) => [target.order, target]));
  const after = merged(given, decision.targets);
  const same = decision.rollout === stored && seen;
  const deadline = deadlineAmong(decision.rollout, after, observations.holds);
  const next = same ? onTime(stored, deadline) : timed(decision.rollout, deadline, now);
  if (next === stored) return { messages: requested, again: false };

  await ports.table.write([
    { put: { ...next, version: stored.version + 1 }, when: { version: stored.version } },
    ...decision.targets.map((target) => ({
      put: { ...target, version: target.version + 1 },
      when: { version: target.version },
    })),
    ...decision.assignments.map((assignment) =>
      assignmentWrite(assignment, { known, syncs: observations.syncs, now, ports }),
    ),
    ...registrationChecks(decision.assignments, observations.fleet),
    ...decision.removals.map((sync) => ({ delete: { pk: sync.pk, sk: sync.sk }, when: { version: sync.version } })),
    ...closing(known, next, after),
    subjectWrite(known.row, { rollout: next, now }),
  ]);
  return {
    messages: [
      ...requested,
      ...wakeUps(decision.assignments),
      ...(stored.pausedAt !== undefined && next.pausedAt === undefined ? continued(next) : []),
      ...reports(stored, next),
    ],
    again: decision.again,
  };
}

function running(rollout: RolloutRow, now: Date): RolloutRow {
  const [first, ...rest] = rollout.stages;
  if (first === undefined) throw new Error(`rollout ${rollout.number} has no stages`);
  const at = now.toISOString();
  const message = `stage ${first.name} started (${first.size} clusters)`;
  return {
    ...rollout,
    phase: "Running",
    reason: "StageStarted",
    message,
    stages: [{ ...first, startedAt: at }, ...rest],
    transitions: [...rollout.transitions, { at, phase: "Running", reason: "StageStarted", message }],
  };
}

/** Everything outstanding, parked and returned, and the next of the stage in order. */
async function readTargets(
  rollout: RolloutRow,
  { freeze, table }: { readonly freeze: Freeze | undefined; readonly table: Table },
): Promise<readonly TargetRow[]> {
  const refs = [...rollout.outstanding, ...rollout.parked, ...rollout.returned];
  const [held, next] = await Promise.all([
    refs.length === 0
      ? []
      : table.getMany(refs.map((ref: TargetRef) => keys.target(rollout.subject, rollout.number, ref))),
    freeze === undefined ? readNext(rollout, table) : [],
  ]);
  const byOrder = new Map([...held, ...next].map((target) => [target.order, target]));
  return [...byOrder.values()].sort((a, b) => a.order - b.order);
}

async function readNext(rollout: RolloutRow, table: Table): Promise<readonly TargetRow[]> {
  const stage = rollout.stages[rollout.stage];
  if (stage === undefined || rollout.phase !== "Running" || stage.counts.Waiting + stage.counts.Rendering === 0)
    return [];
  if (stage.cursor > stage.last) return [];
  const wanted = Math.min(Math.max(rollout.outstanding.length, fewestNext), mostNext);
  const next: TargetRow[] = [];
  const rest = {
    ...ranges.targets(rollout.subject, rollout.number, { from: stage.cursor, to: stage.last }),
    limit: wanted,
  };
  // Those in front that still wait for their renderings, or are frozen, may have others behind them whose turn has come and gone.
  for await (const page of allPages((start) => table.query({ ...rest, ...start }))) {
    next.push(...page);
    const waiting = next.filter((target) => target.state === "Waiting" && target.frozen === undefined).length;
    if (waiting >= wanted) break;
  }
  return next;
}

interface Looking {
  readonly rollout: RolloutRow;
  readonly targets: readonly TargetRow[];
  readonly now: Date;
}

/** Syncs of everything open or carried, and of what waits or does not answer its renderings and whether it is selected. */
async function readObservations(known: Known, { rollout, targets, now }: Looking, table: Table) {
  const names = [...rollout.plan.templates.map((template) => template.name), ...rollout.plan.removed].map((name) =>
    syncName(rollout.subject, name),
  );
  const clusters = new Set([
    ...targets.filter(isOpen).map((target) => target.cluster),
    ...rollout.carried.map((one) => one.cluster),
  ]);
  const waiting = targets.filter((target) => target.state === "Waiting" || target.state === "Rendering");
  const inputs = new Set(
    waiting.flatMap((target) => target.inputs.flatMap((input) => ("digest" in input ? [input.digest] : []))),
  );
  const parked = targets.filter((target) => target.state === "Unreachable");
  const asked = [...waiting, ...parked].filter((target) => target.leaving !== true).map((target) => target.cluster);
  // What a freeze covers is said by labels.
  const braked = isReleased(known.brake) ? [] : [...rollout.outstanding, ...rollout.carried].map((one) => one.cluster);
  const wanted = [
    ...[...clusters].flatMap((cluster) => names.map((name) => keys.sync(cluster, rollout.subject.namespace, name))),
    ...[...inputs].map((input) => keys.rendering(input)),
    ...[...asked, ...braked].map((cluster) => keys.fleet(cluster)),
  ];
  const rows = wanted.length === 0 ? [] : await table.getMany(wanted, { newer: "kept" });
  const selection = relationOf(known.row).clusters;
  const fleet = rows.filter((row) => row.type === "Fleet");
  const kept = fleet.filter((row) => rollout.plan.farewell !== undefined || selects(selection, row));
  const selected = new Set(kept.map((row) => row.name));
  return {
    syncs: rows.filter((row) => row.type === "SyncOnCluster"),
    fleet,
    holds: holdsOf(known.brake, fleet, now),
    selected: new Map(asked.map((cluster) => [cluster, selected.has(cluster)])),
    unreadable: unreadable(rows.filter(isNewer), waiting),
    renderings: new Map(rows.filter((row) => row.type === "Rendering").map((row) => [row.input, row])),
  };
}

/** By cluster: its own rows, and those of the renderings that it waits for. */
function unreadable(newer: readonly NewerRow[], waiting: readonly TargetRow[]): ReadonlyMap<string, string> {
  const reasons = new Map<string, string>();
  if (newer.length === 0) return reasons;
  const rows = new Map(newer.map((row) => [keyText(row), row]));
  for (const row of newer) if (keys.rendering.parse(row) === undefined) reasons.set(clusterOf(row), newerRowText(row));
  for (const { cluster, inputs } of waiting) {
    const keysOfInputs = inputs.flatMap((input) => ("digest" in input ? [keyText(keys.rendering(input.digest))] : []));
    const row = keysOfInputs.flatMap((key) => rows.get(key) ?? [])[0];
    if (row !== undefined) reasons.set(cluster, newerRowText(row));
  }
  return reasons;
}

function isOpen(target: TargetRow): boolean {
  return target.endedAt === undefined;
}

/** A Cluster that was deleted, or registered anew, since it was looked at gets nothing. */
function registrationChecks(assignments: readonly Assignment[], fleet: readonly FleetRow[]): Write[] {
  const assigned = new Set(assignments.filter(({ desired }) => desired.action !== "orphan").map((one) => one.cluster));
  return fleet
    .filter((row) => assigned.has(row.name))
    .map((row) => ({ check: { pk: row.pk, sk: row.sk }, when: [{ attribute: "uid", equals: row.uid }] }));
}

interface Assigning {
  readonly known: Known;
  readonly syncs: readonly SyncRow[];
  readonly now: Date;
  readonly ports: PlannerPorts;
}

function assignmentWrite(assignment: Assignment, assigning: Assigning): Write {
  const { cluster, name, desired } = assignment;
  const { subject, row: assigner } = assigning.known;
  const found = assigning.syncs.find((sync) => sync.cluster === cluster && sync.name === name);
  const before = found === undefined || found.subjectUid === assigner.uid ? found : unobserved(found);
  const row: SyncRow = {
    ...before,
    ...keys.sync(cluster, subject.namespace, name),
    type: "SyncOnCluster",
    schema: rowSchema,
    version: (before?.version ?? 0) + 1,
    cluster,
    namespace: subject.namespace,
    name,
    uid: syncUid(assigning.ports.installation, { namespace: subject.namespace, name, cluster }),
    subject,
    subjectUid: assigner.uid,
    desired: nextDesired(desired, before, assigning.ports.ids.unique()),
    statePk: stateIndex.pk(subject),
    stateSk: stateIndex.sk(desired.action === "orphan" ? "Orphaned" : "Assigned", { cluster, name }),
  };
  const at = desired.action === "orphan" ? undefined : watchdogAt(assigning.now, 0);
  return { put: due(row, at, 1), when: before === undefined ? "absent" : { version: before.version } };
}

/** What was left by an object that had the same name is nobody's: nothing of it was assigned by this one. */
function unobserved({ operations: _operations, ...row }: SyncRow): SyncRow {
  return withWorkerHalf(row, { observed: undefined, held: undefined, deaths: row.deaths });
}

/** In the shape of a UUID; the same for the same place, so that a lost table finds its objects again. */
function syncUid(
  installation: string,
  sync: { readonly namespace: string; readonly name: string; readonly cluster: string },
): string {
  const hex = digestOf({ installation, ...sync }).slice("sha256:".length);
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join("-");
}

/** When a rollout completes, the head lets go of it and remembers whom it left behind. */
function closing(known: Known, rollout: RolloutRow, targets: readonly TargetRow[]): Write[] {
  const { head } = known;
  if (rollout.phase !== "Complete" || head === undefined) return [];
  const { open: _open, ...kept } = head;
  const gone = new Set(isClearOf(rollout) ? rollout.plan.removed : []);
  const behind = new Set([...head.behind, ...rollout.parked.map((ref) => ref.cluster), ...rollout.left]);
  const endedAt = rollout.endedAt ?? rollout.createdAt;
  const next: HeadRow = {
    ...kept,
    version: head.version + 1,
    completed: rollout.number,
    completedAt: endedAt,
    templates: head.templates.filter((template) => !gone.has(template)),
    behind: [...behind].sort(),
    ...unforgottenOf(targets),
    unassigned: [...new Set([...(head.unassigned ?? []), ...(rollout.unassigned ?? [])])].sort(),
    lately: { at: endedAt, failed: countOf(rollout, "Failed"), unreachable: countOf(rollout, "Unreachable") },
  };
  return [{ put: due(next, endedAt, head.dispatches), when: { version: head.version } }];
}

function unforgottenOf(targets: readonly TargetRow[]): Pick<HeadRow, "unforgotten"> {
  const leaving = targets.filter(({ leaving, state }) => leaving === true && state === "Unreachable");
  return leaving.length === 0 ? {} : { unforgotten: leaving.map(({ cluster }) => cluster) };
}

function countOf({ stages }: RolloutRow, state: "Failed" | "Unreachable"): number {
  return stages.reduce((sum, stage) => sum + stage.counts[state], 0);
}

/**
 * True when no cluster can still have an assignment of a removed template: a target that failed before it was assigned
 * anything has them all, and a rollout to some clusters says nothing about the others.
 */
function isClearOf({ plan, trigger, stages }: RolloutRow): boolean {
  if (plan.farewell !== undefined) return true;
  return trigger !== "membership" && stages.every((stage) => stage.counts.Failed === 0);
}

function merged(given: ReadonlyMap<number, TargetRow>, changed: readonly TargetRow[]): TargetRow[] {
  return [...new Map([...given, ...changed.map((target) => [target.order, target] as const)]).values()];
}

/** The one timer of a rollout: its nearest deadline, and a watchdog while somebody's word is awaited. */
function timed(rollout: RolloutRow, deadline: string | undefined, now: Date): RolloutRow {
  if (rollout.phase === "Complete") return due(rollout, undefined);
  const watchdog =
    rollout.phase === "Halted" && rollout.outstanding.length === 0 ? later(now, 600) : watchdogAt(now, 0);
  const parked = rollout.parked.length > 0 ? [later(now, parkedSeconds)] : [];
  const at = [watchdog, ...parked, ...(deadline === undefined ? [] : [deadline])].sort()[0] ?? watchdog;
  return due(rollout, at);
}

/** A watchdog that has grown past the nearest deadline, or that was lost, is put back; else the row stays as it is. */
function onTime(rollout: RolloutRow, deadline: string | undefined): RolloutRow {
  const dueAt = rollout.dueKey === undefined ? undefined : dueAtOf(rollout.dueKey);
  if (dueAt !== undefined && (deadline === undefined || dueAt <= deadline)) return rollout;
  return due(rollout, deadline ?? rollout.createdAt, rollout.dispatches);
}

function deadlineAmong(
  rollout: RolloutRow,
  targets: readonly TargetRow[],
  holds: ReadonlyMap<string, Hold>,
): string | undefined {
  const outstanding = new Set(rollout.outstanding.map((ref) => ref.order));
  return nextDeadline(
    rollout,
    targets.filter((target) => outstanding.has(target.order)),
    holds,
  );
}

/** After a suspension the workers go on with what they have: their watchdogs have grown long meanwhile. */
function continued(rollout: RolloutRow): Message[] {
  const clusters = new Set([...rollout.outstanding, ...rollout.carried].map((one) => one.cluster));
  return [...clusters].map((cluster) => ({ to: "apply", cluster }));
}

function wakeUps(assignments: readonly Assignment[]): Message[] {
  const clusters = new Set(
    assignments.filter(({ desired }) => desired.action !== "orphan").map(({ cluster }) => cluster),
  );
  return [...clusters].map((cluster) => ({ to: "apply", cluster }));
}

/** A rollout is reported when its phase or its stage changed. */
function reports(before: RolloutRow, after: RolloutRow): Message[] {
  if (before.transitions.length === after.transitions.length) return [];
  return [{ to: "report", about: { kind: "Rollout", subject: after.subject, number: after.number } }];
}
