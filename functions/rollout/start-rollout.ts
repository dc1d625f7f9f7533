import { readFleet, type StoredMember, storeMembers } from "#functions/rollout/fleet.ts";
import type { PlannerPorts, Step } from "#functions/rollout/planner-ports.ts";
import type { Known } from "#functions/rollout/read-subject.ts";
import { recallMembers } from "#functions/rollout/recall-members.ts";
import { renderedSince } from "#functions/rollout/rendered-since.ts";
import { targetPage } from "#functions/rollout/seal-rollout.ts";
import { stateEntries } from "#functions/rollout/state-entries.ts";
import { subjectWrite } from "#functions/rollout/subject-write.ts";
import { defined } from "#shared/base/defined.ts";
import { deadlineOf } from "#shared/fleet/rollout/judge.ts";
import { type Member, membershipHash, membersOf, relationOf, stageOf } from "#shared/fleet/rollout/plan.ts";
import { due, watchdogAt } from "#shared/fleet/rows/due.ts";
import { clusterOf, keys, syncName } from "#shared/fleet/rows/keys.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";
import type { HeadRow, Plan, RolloutRow, RolloutStage, TargetState } from "#shared/fleet/rows/rollout-rows.ts";
import { targetStates } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer, rowSchema } from "#shared/fleet/rows/row.ts";
import { isOutstanding, type Phase, type SyncRow } from "#shared/fleet/rows/sync-row.ts";

/**
 * Supersede `newest`: a newer plan takes over while the rollout is in its first stage, and always from a halted one.
 * A deletion takes over from anything; a `reconcile` starts a halted rollout over.
 */
export function isSuperseded(known: Known, rollout: RolloutRow): boolean {
  if (known.row.operations.suspended !== undefined || !known.desired.ok) return false;
  const newer = known.desired.plan.contentHash !== rollout.plan.contentHash;
  if (rollout.phase === "Halted" && !isRecovered(known)) return newer || isAskedAgain(known);
  // What was planned before rows went on from what clusters remember may be older than what these have.
  return isRecovered(known) || (newer && (rollout.stage === 0 || known.desired.plan.farewell !== undefined));
}

/** By number and not by time: the clock of whoever asked is another one. */
function isAskedAgain({ row, head }: Known): boolean {
  const asked = row.operations.reconcile?.number;
  return asked !== undefined && asked !== head?.handledReconcile && asked !== head?.restartedFor;
}

function isRecovered({ row, head }: Known): boolean {
  const { recovered } = row.operations;
  return recovered?.number !== undefined && recovered.number !== head?.recoveredFor;
}

/** Ends the open rollout in favour of a new one; clusters it left changing keep their slots in the new one. */
export async function supersede(known: Known, rollout: RolloutRow, ports: PlannerPorts): Promise<Step> {
  const { head, desired } = known;
  if (head === undefined || !desired.ok) throw new Error("a rollout without a head, or without a plan to follow it");
  const before = await recallMembers(rollout.members, known.subject, ports);
  // Who is no longer selected leaves, whoever of them the list would have named.
  const leaving = before.lost ? before.members : before.members.filter((member) => member.leaving === true);
  const selection = await selectionOf(known, { plan: desired.plan, leaving }, ports);
  const trigger = triggerOf(desired.plan, desired.plan.contentHash === rollout.plan.contentHash ? "reconcile" : "plan");
  return begin(
    {
      known,
      plan: desired.plan,
      trigger,
      superseded: rollout,
      selection,
      moved: [...selection.readable, ...selection.leavers],
    },
    ports,
  );
}

/** Nothing is to be rolled out. */
interface Settled {
  /** Members that are left as they are, because a row of theirs cannot be read: as far as it was read here. */
  readonly unreadable: ReadonlySet<string>;
}

/** Starts a rollout when the plan or the fleet is not what the last one left. */
export async function startRollout(known: Known, ports: PlannerPorts): Promise<Step | Settled> {
  const { head, desired, row } = known;
  if (row.operations.suspended !== undefined || !desired.ok) return { unreadable: new Set() };
  const { plan } = desired;
  const selection = await selectionOf(known, { plan, leaving: [] }, ports);
  if (head?.contentHash !== plan.contentHash || isRecovered(known)) {
    const moved = [...selection.readable, ...selection.leavers];
    return begin({ known, plan, trigger: triggerOf(plan, "plan"), superseded: undefined, selection, moved }, ports);
  }
  const { answering, unread } = await answeringAgain(known, head, ports);
  const settled = { unreadable: selection.unreadable.union(unread) };
  const behind = answering.union(await renderedSince(head.unassigned ?? [], selection.members, ports.table));
  const same = head.membershipHash === selection.hash;
  if (same && behind.size === 0) return settled;
  const before = new Map(selection.previous.map((member) => [member.cluster, membershipHash([member])]));
  const moved = [
    ...selection.readable.filter(
      (member) => before.get(member.cluster) !== membershipHash([member]) || behind.has(member.cluster),
    ),
    ...selection.leavers,
  ];
  if (same && moved.length === 0) return settled;
  return begin({ known, plan, trigger: "membership", superseded: undefined, selection, moved }, ports);
}

function triggerOf(plan: Plan, otherwise: RolloutRow["trigger"]): RolloutRow["trigger"] {
  return plan.farewell === undefined ? otherwise : "deletion";
}

interface Selection {
  readonly members: readonly Member[];
  /** Those of them that a rollout can be about. */
  readonly readable: readonly Member[];
  readonly leavers: readonly StoredMember[];
  readonly previous: readonly StoredMember[];
  readonly hash: string;
  /** Members whose labels and values only a newer version can read. */
  readonly unreadable: ReadonlySet<string>;
}

interface Asked {
  readonly plan: Plan;
  /** Leavers that the rollout before may not have let go of yet. */
  readonly leaving: readonly StoredMember[];
}

async function selectionOf(known: Known, { plan, leaving }: Asked, ports: PlannerPorts): Promise<Selection> {
  const list = known.head?.members;
  const recalled = list === undefined ? undefined : await recallMembers(list, known.subject, ports);
  const previous = recalled?.members ?? [];
  const relation = relationOf(known.row);
  const { clusters: fleet, unreadable } = await readFleet(ports.table);
  const readable =
    plan.farewell === undefined ? membersOf(relation, plan, fleet) : departing(previous, relation.rollout, fleet);
  const members = withUnreadable(
    readable,
    previous.filter(({ cluster }) => unreadable.has(cluster)),
  );
  const selected = new Set(members.map((member) => member.cluster));
  const unforgotten = (known.head?.unforgotten ?? []).map((cluster) => ({ cluster, uid: "" }));
  const gone = new Map([...unforgotten, ...previous, ...leaving].map((member) => [member.cluster, member]));
  const lastStage = relation.rollout.stages.length - 1;
  const leavers = [...gone.values()]
    .filter((member) => !selected.has(member.cluster))
    .map(({ cluster, uid }) => ({ cluster, uid, stage: lastStage, inputs: [], leaving: true as const }));
  const hash = membershipHash(members);
  // It is the same list again, unless stages have moved; then the next rollout stores another.
  if (recalled?.lost === true && hash === known.head?.membershipHash) await storeMembers(ports.blobs, members);
  return { members, readable, leavers, previous, hash, unreadable: unreadable.intersection(selected) };
}

/** Whoever was selected and cannot be read stays as it was, in its place: it is neither gone nor anything else. */
function withUnreadable(readable: readonly Member[], kept: readonly StoredMember[]): readonly Member[] {
  const known = new Set(readable.map((member) => member.cluster));
  const missing = kept.filter(({ cluster }) => !known.has(cluster));
  if (missing.length === 0) return readable;
  return [...readable, ...missing].sort((a, b) => a.stage - b.stage || (a.cluster < b.cluster ? -1 : 1));
}

/** Whom a deletion is about: those the subject was last rolled out to, in the stages that it has now. */
function departing(
  previous: readonly StoredMember[],
  strategy: RolloutRow["strategy"],
  fleet: readonly FleetRow[],
): Member[] {
  const registered = new Map(fleet.map((cluster) => [cluster.name, cluster]));
  return previous.map(({ cluster, uid }) => {
    const row = registered.get(cluster);
    return { cluster, uid, stage: row === undefined ? strategy.stages.length - 1 : stageOf(strategy, row), inputs: [] };
  });
}

/**
 * Clusters that a completed rollout left behind and that answer now; and those it took for failed, because nobody had
 * said in time that they do not answer. The index may be behind: what it names is read.
 */
async function answeringAgain(
  known: Known,
  head: HeadRow,
  ports: PlannerPorts,
): Promise<{ readonly answering: ReadonlySet<string>; readonly unread: ReadonlySet<string> }> {
  const { behind } = head;
  const names = head.templates.map((template) => syncName(known.subject, template));
  const answering = await stateEntries(known.subject, ports.table, "Reachable");
  const wanted = [
    ...behind.flatMap((cluster) => names.map((name) => keys.sync(cluster, known.subject.namespace, name))),
    ...answering.map((entry) => entry.key),
  ];
  if (wanted.length === 0) return { answering: new Set(), unread: new Set() };
  const found = await ports.table.getMany(wanted, { newer: "kept" });
  const rows = found.filter((row) => row.type === "SyncOnCluster");
  const inPhase = (phase: Phase) =>
    rows.filter((sync) => names.includes(sync.name) && sync.observed?.phase === phase && isOutstanding(sync));
  const unread = new Set(found.filter(isNewer).map((row) => clusterOf(row)));
  const away = new Set(inPhase("Unreachable").map((sync) => sync.cluster)).union(unread);
  const untried = await thoseUntried(inPhase("Reachable"), head, ports);
  return { answering: new Set(behind).difference(away).union(untried), unread };
}

/** Clusters that the last rollout was to bring up and could not assign anything are not tried again by the next one. */
async function thoseUntried(syncs: readonly SyncRow[], head: HeadRow, ports: PlannerPorts): Promise<Set<string>> {
  if (syncs.length === 0) return new Set();
  const last = await ports.table.get(keys.rollout(head.subject, head.last));
  const { members } = last === undefined ? { members: [] } : await recallMembers(last.members, head.subject, ports);
  const tried = new Set(members.map((member) => member.cluster));
  return new Set(
    syncs.filter((sync) => sync.desired.rollout === head.last || !tried.has(sync.cluster)).map((sync) => sync.cluster),
  );
}

interface Beginning {
  readonly known: Known;
  readonly plan: Plan;
  readonly trigger: RolloutRow["trigger"];
  readonly superseded: RolloutRow | undefined;
  readonly selection: Selection;
  readonly moved: readonly StoredMember[];
}

async function begin(beginning: Beginning, ports: PlannerPorts): Promise<Step> {
  const { known, plan, trigger, superseded, selection } = beginning;
  const { subject, head } = known;
  const now = ports.clock.now();
  const number = (head?.last ?? 0) + 1;
  const moved = beginning.moved.toSorted((a, b) => a.stage - b.stage || (a.cluster < b.cluster ? -1 : 1));
  const [members, all] = [await storeMembers(ports.blobs, moved), await storeMembers(ports.blobs, selection.members)];
  const strategy = relationOf(known.row).rollout;
  const revision = describeRevisions(plan.templates.map((template) => template.revision));
  const planned = targetPage({ subject, number, plan }, moved, 0);
  const phase = planned.length === moved.length ? "Sealed" : "Planning";
  const message = `${moved.length} of ${selection.members.length} clusters to look at`;
  const rollout: RolloutRow = {
    ...keys.rollout(subject, number),
    type: "Rollout",
    schema: rowSchema,
    version: 1,
    subject,
    number,
    phase,
    reason: trigger,
    message,
    plan,
    strategy,
    membershipHash: membershipHash(moved),
    members,
    size: moved.length,
    planned: planned.length,
    stages: stagesOf(strategy.stages, moved),
    stage: 0,
    outstanding: [],
    parked: [],
    returned: [],
    left: [],
    carried: carriedFrom(superseded, now),
    selected: selection.members.length,
    trigger,
    revision,
    ...defined({ fromRevision: known.row.status.revision }),
    createdAt: now.toISOString(),
    failures: [],
    preexistingFailures: 0,
    transitions: [{ at: now.toISOString(), phase, reason: trigger, message }],
  };
  const still = new Set(selection.members.map((member) => member.cluster));
  for (const member of moved) still.delete(member.cluster);
  const templates = new Set([...(head?.templates ?? []), ...plan.templates.map((template) => template.name)]);
  const nextHead: HeadRow = {
    ...keys.head(subject),
    type: "Head",
    schema: rowSchema,
    version: (head?.version ?? 0) + 1,
    subject,
    last: number,
    open: number,
    contentHash: plan.contentHash,
    membershipHash: selection.hash,
    templates: [...templates].sort(),
    members: all,
    behind: (head?.behind ?? []).filter((cluster) => still.has(cluster)),
    ...(head?.completed === undefined ? {} : { completed: head.completed }),
    ...(head?.completedAt === undefined ? {} : { completedAt: head.completedAt }),
    unassigned: (head?.unassigned ?? []).filter((cluster) => still.has(cluster)),
    ...reconcileMarks(beginning),
    ...recoverMark(known),
  };
  await ports.table.write([
    { put: due(rollout, watchdogAt(now, 0)), when: "absent" },
    { put: nextHead, when: head === undefined ? "absent" : { version: head.version } },
    ...(superseded === undefined
      ? []
      : [{ put: ended(superseded, number, now), when: { version: superseded.version } }]),
    ...planned.map((target) => ({ put: target })),
    subjectWrite(known.row, { rollout, now }),
  ]);
  const about =
    superseded === undefined
      ? []
      : [{ to: "report" as const, about: { kind: "Rollout" as const, subject, number: superseded.number } }];
  return { messages: [...about, { to: "report", about: { kind: "Rollout", subject, number } }], again: true };
}

function recoverMark({ row }: Known): Pick<HeadRow, "recoveredFor"> {
  const { recovered } = row.operations;
  return recovered === undefined ? {} : { recoveredFor: recovered.number };
}

/** A `reconcile` that was passed on and is not answered yet is passed on again when the rollout is over. */
function reconcileMarks({
  known: { head, row },
  superseded,
}: Beginning): Pick<HeadRow, "handledReconcile" | "restartedFor"> {
  const restarted = superseded?.phase === "Halted" ? row.operations.reconcile?.number : head?.restartedFor;
  const handled = head?.looking === undefined ? head?.handledReconcile : undefined;
  return {
    ...defined({ handledReconcile: handled, restartedFor: restarted }),
  };
}

function describeRevisions(revisions: readonly string[]): string {
  const distinct = [...new Set(revisions)];
  if (distinct.length === 0) return "nothing";
  return distinct.length === 1 ? (distinct[0] ?? "") : `${distinct.length} revisions`;
}

const noTargets = Object.fromEntries(targetStates.map((state) => [state, 0])) as Record<TargetState, number>;

function stagesOf(stages: RolloutRow["strategy"]["stages"], members: readonly StoredMember[]): RolloutStage[] {
  let first = 0;
  return stages.map((stage, index) => {
    const size = members.filter((member) => member.stage === index).length;
    const last = first + size - 1;
    const row: RolloutStage = {
      name: stage.name,
      ...defined({ maxConcurrent: stage.maxConcurrent }),
      size,
      first,
      last,
      cursor: first,
      counts: { ...noTargets, Waiting: size },
    };
    first = last + 1;
    return row;
  });
}

/** A rollout's outstanding clusters go on changing after it: they hold slots for one more deadline at most. */
function carriedFrom(superseded: RolloutRow | undefined, now: Date): RolloutRow["carried"] {
  if (superseded === undefined) return [];
  const until = deadlineFrom(superseded, now);
  const own = superseded.outstanding.map((ref) => ({ cluster: ref.cluster, until }));
  const carried = superseded.carried
    .filter((one) => !own.some((other) => other.cluster === one.cluster))
    // Nobody has looked since the suspension ended, or this would be done.
    .map((one) => (superseded.pausedAt === undefined ? one : { ...one, until }));
  return [...own, ...carried];
}

function deadlineFrom(rollout: RolloutRow, now: Date): string {
  return deadlineOf({ assignedAt: now.toISOString() }, { strategy: rollout.strategy }) ?? now.toISOString();
}

/** What still waited is never assigned: its count moves to Superseded. */
function ended(rollout: RolloutRow, by: number, now: Date): RolloutRow {
  const stages = rollout.stages.map((stage) => {
    const { Waiting, Rendering, Assigned, Applying, Verifying, Superseded } = stage.counts;
    const moved = { Waiting: 0, Rendering: 0, Assigned: 0, Applying: 0, Verifying: 0 };
    return {
      ...stage,
      counts: {
        ...stage.counts,
        ...moved,
        Superseded: Superseded + Waiting + Rendering + Assigned + Applying + Verifying,
      },
    };
  });
  const message = `rollout ${by} took over`;
  const transition = { at: now.toISOString(), phase: "Superseded" as const, reason: "Newer", message };
  return {
    ...due(rollout, undefined),
    version: rollout.version + 1,
    phase: "Superseded",
    reason: "Newer",
    message,
    stages,
    outstanding: [],
    supersededBy: by,
    endedAt: now.toISOString(),
    transitions: [...rollout.transitions, transition],
  };
}
