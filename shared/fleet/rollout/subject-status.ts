/** The status half of a SyncGroup or Sync: the one place that says what state it is in. */
import { defined } from "#shared/base/defined.ts";
import { selectionText } from "#shared/fleet/kinds/cluster-selection.ts";
import { type DesiredPlan, relationOf } from "#shared/fleet/rollout/plan.ts";
import {
  type Condition,
  newestAct,
  type SubjectRow,
  type SubjectState,
  type SubjectStatus,
} from "#shared/fleet/rows/object-rows.ts";
import type { RolloutRow, TargetState } from "#shared/fleet/rows/rollout-rows.ts";

/** Clusters named in a message; the rest is counted. */
const namesShown = 3;

export interface StatusFacts {
  readonly now: Date;
  /** The rollout that is open, or was closed by this very write. */
  readonly rollout?: RolloutRow;
  /** Why there is nothing to plan, when there is not. */
  readonly waiting?: Extract<DesiredPlan, { ok: false }>;
  /** Clusters by the state of their Syncs, when no rollout is open. */
  readonly settled?: SubjectStatus["clusters"];
  /** Clusters that are selected by name and not registered. */
  readonly missing?: readonly string[];
  /** Clusters that are selected and left as they are, because only a newer version can read a row of theirs. */
  readonly unreadable?: readonly string[];
  /** The newest `reconcile`, and whether every cluster has been looked at since. */
  readonly reconcile?: { readonly number: number; readonly answered: boolean };
}

export function subjectStatus(row: SubjectRow, facts: StatusFacts): SubjectStatus {
  const { rollout, now, reconcile } = facts;
  const clusters = rollout === undefined ? (facts.settled ?? row.status.clusters) : clustersOf(rollout);
  const state = stateOf(row, facts);
  return {
    observedGeneration: row.generation,
    ...pick(newestAct(row.operations), "observedOperation"),
    ...pick(reconcile?.answered === true ? reconcile.number : row.status.reconciled, "reconciled"),
    ...pick(rollout?.revision ?? row.status.revision, "revision"),
    ...pick(rollout?.number ?? row.status.rollout, "rollout"),
    state,
    ...defined({ clusters }),
    asOf: now.toISOString(),
    conditions: [readyCondition(row, facts, { state, clusters, now })],
  };
}

function pick<K extends string, V>(value: V | undefined, key: K): { readonly [P in K]?: V } {
  return value === undefined ? {} : ({ [key]: value } as { readonly [P in K]: V });
}

/** Why a subject that is being deleted is not ready, when that came to a halt. */
export const deletionFailed = "DeletionFailed";

/** Complete is said of what was seen of every cluster, and never of a rollout alone: that names those it moved. */
function stateOf(row: SubjectRow, facts: StatusFacts): SubjectState {
  const { rollout, settled, missing = [], unreadable = [], reconcile } = facts;
  if (row.operations.suspended !== undefined) return "Suspended";
  if (row.operations.deletion !== undefined) return "Deleting";
  if (facts.waiting !== undefined) return "Waiting";
  if (rollout !== undefined) {
    if (rollout.phase === "Halted") return "Halted";
    if (rollout.phase !== "Complete" && rollout.reason === "Frozen") return "Frozen";
    return rollout.phase !== "Complete" && rollout.reason === "TooManyUnreachable" ? "Stalled" : "Rolling";
  }
  if (settled === undefined) return reconcile === undefined ? "Waiting" : "Reconciling";
  if (settled.selected === 0) return missing.length > 0 ? "ClusterNotFound" : "NoClusters";
  if (settled.failed + settled.unreachable + settled.waiting > 0) return "Degraded";
  if (reconcile?.answered === false || settled.changing > 0) return "Reconciling";
  const lacking = missing.length + unreadable.length;
  return settled.ready === settled.selected && lacking === 0 ? "Complete" : "Degraded";
}

/** A rollout moves a part of the selection; clusters it does not name are where the last one left them. */
function clustersOf(rollout: RolloutRow): NonNullable<SubjectStatus["clusters"]> {
  const sum = (...states: readonly TargetState[]) =>
    rollout.stages.reduce((total, stage) => total + states.reduce((part, state) => part + stage.counts[state], 0), 0);
  const untouched = Math.max(0, rollout.selected - (rollout.size - sum("Skipped")));
  return {
    selected: rollout.selected,
    ready: sum("Succeeded", "Unchanged") + untouched,
    changing: sum("Assigned", "Applying", "Verifying"),
    failed: sum("Failed"),
    unreachable: sum("Unreachable"),
    waiting: sum("Waiting", "Rendering", "Superseded"),
  };
}

interface Assessed {
  readonly state: SubjectState;
  readonly clusters: SubjectStatus["clusters"];
  readonly now: Date;
}

function readyCondition(row: SubjectRow, facts: StatusFacts, assessed: Assessed): Condition {
  const { state, now } = assessed;
  const settled = state === "Complete" ? "AllClustersReady" : state === "Degraded" ? degradedReason(facts) : state;
  const condition = {
    type: "Ready",
    status: state === "Complete" ? ("True" as const) : ("False" as const),
    reason:
      state === "Waiting" ? (facts.waiting?.reason ?? "NothingRolledOut") : (failedDeletion(state, facts) ?? settled),
    message: messageOf(row, facts, assessed),
  };
  const before = row.status.conditions.find((other) => other.type === "Ready");
  const since = before?.status === condition.status ? before.since : now.toISOString();
  return { ...condition, since };
}

function degradedReason({ missing = [], unreadable = [] }: StatusFacts): string {
  if (missing.length > 0) return "ClusterNotFound";
  return unreadable.length > 0 ? "NewerRow" : "Degraded";
}

function failedDeletion(state: SubjectState, { rollout }: StatusFacts): string | undefined {
  return state === "Deleting" && rollout?.phase === "Halted" ? deletionFailed : undefined;
}

function messageOf(row: SubjectRow, facts: StatusFacts, { state, clusters }: Assessed): string {
  const { rollout, missing = [], unreadable = [] } = facts;
  const counts = clusters === undefined ? "" : `${clusters.ready} of ${clusters.selected} clusters ready`;
  const selection = relationOf(row).clusters;
  switch (state) {
    case "Waiting":
      return facts.waiting?.message ?? "nothing was rolled out yet";
    case "Halted":
    case "Stalled":
    case "Frozen":
      return rollout?.message ?? "";
    case "Deleting":
      return rollout === undefined ? counts : deletionText(rollout);
    case "NoClusters":
      return `no registered cluster matches ${selectionText(selection)}; nothing is rolled out until one does`;
    case "ClusterNotFound":
      return `${notFoundText(missing)}; nothing is rolled out until ${missing.length === 1 ? "it is" : "one is"}`;
    case "Degraded":
      return [counts, notFoundText(missing), unreadableText(unreadable)].filter((part) => part !== "").join("; ");
    default:
      return counts;
  }
}

function unreadableText(clusters: readonly string[]): string {
  if (clusters.length === 0) return "";
  const whose = `${clusters.length === 1 ? "cluster" : "clusters"} ${named(clusters)}`;
  return `rows of ${whose} were written by a newer version of Starling, and are left alone: update the stack`;
}

function notFoundText(missing: readonly string[]): string {
  if (missing.length === 0) return "";
  const one = missing.length === 1;
  return `${one ? "cluster" : "clusters"} ${named(missing)} ${one ? "is" : "are"} not registered`;
}

/** What a deletion waits for: who does not answer is named, with the way to go on without it. */
function deletionText(rollout: RolloutRow): string {
  if (rollout.phase === "Halted") return rollout.message;
  const away = rollout.parked.map((ref) => ref.cluster);
  const [first] = away;
  const done = `${clustersOf(rollout).ready} of ${rollout.size} clusters done`;
  if (first === undefined) return done;
  const word = away.length === 1 ? "does" : "do";
  return `${done}; ${named(away)} ${word} not answer, and the deletion waits; to go on without: starling delete cluster/${first} --cascade=orphan`;
}

function named(clusters: readonly string[]): string {
  const shown = clusters.slice(0, namesShown).join(", ");
  return clusters.length > namesShown ? `${shown} and ${clusters.length - namesShown} more` : shown;
}
