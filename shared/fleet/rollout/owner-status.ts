/** The status half of a SyncGroup or Sync: only this module decides its state. */

import { firstOf } from "#shared/base/counted.ts";
import { defined } from "#shared/base/defined.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import { selectionText } from "#shared/fleet/kinds/cluster-selection.ts";
import { type DesiredPlan, describeRevisions, identityNow, relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import { lagSeconds } from "#shared/fleet/rollout/facts.ts";
import { withheldText } from "#shared/fleet/rollout/guard.ts";
import { countHeld, heldIn, namesHolding } from "#shared/fleet/rollout/holding.ts";
import { barredIn, rejectedNewest } from "#shared/fleet/rollout/order.ts";
import { rejectedText, rejectionOf } from "#shared/fleet/rollout/rejection.ts";
import { heldText, holdInForce, keptBackBy } from "#shared/fleet/rollout/rollout-hold.ts";
import { changingOf, membersOfAll } from "#shared/fleet/rollout/slots.ts";
import {
  isStalled,
  lastStageRunOf,
  stageRunOf,
  stageRunsIn,
  takenOutOf,
  waitingOf,
} from "#shared/fleet/rollout/stage-runs.ts";
import { activityOf } from "#shared/fleet/rollout/timers.ts";
import { type Cordon, cordonOf, cordonText } from "#shared/fleet/rows/cordons-row.ts";
import { later } from "#shared/fleet/rows/due.ts";
import { type Freeze, type FreezeState, freezeOfAll, freezeText } from "#shared/fleet/rows/freezes-row.ts";
import {
  type Condition,
  newestAct,
  type OwnerRow,
  type OwnerState,
  type OwnerStatus,
} from "#shared/fleet/rows/object-rows.ts";
import type { RolloutStateRow, StageRecord, StageRunRow, WithheldChange } from "#shared/fleet/rows/rollout-rows.ts";
import { type ClusterTallies, clusterCounts, haveDesired } from "#shared/fleet/sync/tally.ts";
import type { Reason } from "#shared/kube/reasons.ts";

/** Number of clusters in a message; the rest is counted. */
export const namesShownInStatus = 3;
/** Length of a worker's message in it. */
const reasonShown = 120;

/** An unhealthy cluster while nothing changes. */
export interface Behind {
  readonly cluster: string;
  readonly state: "failed" | "unreachable";
  readonly since?: string;
  readonly reason?: string;
}

export interface StatusFacts {
  readonly now: Date;
  readonly rolloutState: RolloutStateRow;
  /** At least the stage runs in progress, and those that passed last. */
  readonly stageRuns: ReadonlyMap<string, StageRunRow>;
  readonly desired: DesiredPlan;
  readonly freezeState?: FreezeState;
  readonly cordons?: readonly Cordon[];
  /** Clusters by the state of their Syncs, while nothing changes. */
  readonly settled?: OwnerStatus["clusters"];
  /** The first unhealthy ones among them. */
  readonly behind?: readonly Behind[];
  /** Waiting catch-ups that are not tried before somebody asks, or a rollout passes their stage. */
  readonly stopped?: number;
}

export function ownerStatus(row: OwnerRow, facts: StatusFacts): OwnerStatus {
  const { rolloutState, now } = facts;
  const state = stateOf(row, facts);
  const clusters =
    facts.settled ?? (activityOf(facts) !== "idle" ? clustersOf(facts, row.status.clusters) : row.status.clusters);
  // Written together with the counts, because a reader that waits for one reads the other.
  const isReported = facts.settled !== undefined && isAnswered(row, rolloutState);
  return defined({
    observedGeneration: row.generation,
    observedOperation: newestAct(row.operations),
    reconciled: (isReported ? row.operations.reconcile?.number : undefined) ?? row.status.reconciled,
    revision: rolloutState.ledger[0]?.revision ?? row.status.revision,
    noted: notedRevision(row, facts),
    // For an unreadable rollout state, its last status.
    rollout: rolloutState.last === 0 ? row.status.rollout : rolloutState.last,
    stages: rolloutState.last === 0 ? row.status.stages : rolloutState.stages.map(stageStatus),
    state,
    stateSince: row.status.state === state ? row.status.stateSince : now.toISOString(),
    withheld: withheldBy(facts).length || undefined,
    clusters,
    asOf: now.toISOString(),
    conditions: [readyCondition(row, facts, { state, clusters, now })],
  });
}

/** The commit that is not rolled out, because everything that templates use is as in the newest rollout. */
function notedRevision(row: OwnerRow, { rolloutState, desired }: StatusFacts): string | undefined {
  const [newest] = rolloutState.ledger;
  if (!desired.ok || newest === undefined) return undefined;
  const identity = identityNow({ rolloutState, row }, desired.plan);
  const revision = describeRevisions(desired.plan);
  return identity === newest.identity && revision !== newest.revision ? revision : undefined;
}

/** Whether every cluster has been checked since the newest `reconcile`. */
function isAnswered({ operations: { reconcile } }: OwnerRow, { handledReconcile, checking }: RolloutStateRow): boolean {
  return reconcile === undefined || (reconcile.number === handledReconcile && checking === undefined);
}

function stageStatus({ name, current, updatingTo }: StageRecord): NonNullable<OwnerStatus["stages"]>[number] {
  return { name, ...defined({ current, updatingTo: updatingTo?.rollout }) };
}

/** Why an owner that is being deleted is not ready, when the deletion stands still. */
export const deletionFailed = "DeletionFailed" satisfies Reason;

/**
 * The worst stage run decides the state; among several that stand still, the earliest. One that people rejected stands
 * still because they want that.
 */
function stalledStageRun({ rolloutState, stageRuns }: StatusFacts): StageRunRow | undefined {
  const stalled = stageRunsIn(rolloutState, stageRuns).filter((run) => isStalled(run) && run.phase !== "Rejected");
  return stalled.find(({ phase }) => phase === "Halted") ?? stalled[0];
}

/**
 * Complete means that the index has no Sync that is not ready. A stage run alone never proves it, because it only names
 * the clusters that it changed.
 */
function stateOf(row: OwnerRow, facts: StatusFacts): OwnerState {
  const { rolloutState, settled, desired } = facts;
  const { missing = [], unreadable = [] } = rolloutState;
  if (row.operations.suspended !== undefined) return "Suspended";
  if (row.operations.deletion !== undefined) return "Deleting";
  if (!desired.ok) return "Waiting";
  if (settled?.selected === 0) return missing.length > 0 ? "ClusterNotFound" : "NoClusters";
  const stalled = stalledStageRun(facts);
  if (stalled !== undefined) return stalled.phase === "Halted" ? "Halted" : "Stalled";
  const goOn = rolloutState.stages.filter(({ ahead }) => ahead !== true);
  if (barredIn(rolloutState) !== undefined && stageRunsIn({ stages: goOn }, facts.stageRuns).length === 0)
    return "Stalled";
  const isUnhealthy = settled !== undefined && settled.failed + settled.unreachable > 0;
  if (activityOf(facts) !== "idle") {
    if (freezeIn(facts) !== undefined) return "Frozen";
    if (!isOnlyCordoned(facts) && !isOnlyRejected(facts)) return isGoingBack(facts) ? "RollingBack" : "Rolling";
    return isUnhealthy ? "Degraded" : "Held";
  }
  if (
    !isUnhealthy &&
    (keptBackBy(holdInForce(row, facts.now), rolloutState).length > 0 || rejectedNewest(rolloutState) !== undefined)
  )
    return "Held";
  if (!isUnhealthy && takenOutOf(rolloutState, facts.stageRuns).length > 0) return "Held";
  if (!isUnhealthy && withheldBy(facts).length > 0) return "Guarded";
  // The results have not been counted yet.
  if (settled === undefined) return rolloutState.last === 0 ? "Waiting" : "Reconciling";
  if (settled.failed + settled.unreachable + settled.waiting > 0) return "Degraded";
  if (!isAnswered(row, rolloutState) || settled.changing > 0) return "Reconciling";
  const lacking = missing.length + unreadable.length;
  if (haveDesired(settled) < settled.selected || lacking > 0) return "Degraded";
  return settled.ready === settled.selected ? "Complete" : "Drifted";
}

/** A stage goes back, perhaps while another takes a rollout. */
function isGoingBack({ rolloutState, stageRuns }: StatusFacts): boolean {
  return stageRunsIn(rolloutState, stageRuns).some(({ rollback }) => rollback === true);
}

/** All that is unfinished waits for the end of cordons. */
function isOnlyCordoned({ rolloutState, stageRuns }: StatusFacts): boolean {
  const { catchUps, catchUpsHeld = { holds: [] } } = rolloutState;
  if (changingOf(rolloutState) > 0 || namesHolding({ rolloutState, stageRuns }, "cordon").size === 0) return false;
  if (catchUps.waiting > 0 && countHeld(catchUpsHeld, "cordon") < catchUps.waiting) return false;
  return stageRunsIn(rolloutState, stageRuns).every(
    (stageRun) => stageRun.phase === "Updating" && waitingOf(stageRun) === heldIn(stageRun, "cordon").length,
  );
}

/** All that is unfinished is of rejected rollouts. */
function isOnlyRejected({ rolloutState, stageRuns }: StatusFacts): boolean {
  const runs = stageRunsIn(rolloutState, stageRuns);
  return changingOf(rolloutState) === 0 && runs.length > 0 && runs.every(({ phase }) => phase === "Rejected");
}

/** The newest rollout, and those that stand still in a stage, when they are rejected. */
function rejectedTexts({ rolloutState, stageRuns }: StatusFacts): readonly string[] {
  const runs = stageRunsIn(rolloutState, stageRuns).filter(({ phase }) => phase === "Rejected");
  const numbers = new Set([rejectedNewest(rolloutState) ?? 0, ...runs.map(({ rollout }) => rollout)]);
  return [...numbers].flatMap((number) => {
    const rejection = rejectionOf(rolloutState, number);
    return rejection === undefined ? [] : [`rollout ${number} ${rejectedText(rejection)}`];
  });
}

/** The cordons that hold clusters of the owner back. */
function cordonTexts({ rolloutState, stageRuns, cordons = [], now }: StatusFacts): readonly string[] {
  return [...namesHolding({ rolloutState, stageRuns }, "cordon")].flatMap((name) => {
    const cordon = cordonOf(cordons, name, now);
    return cordon === undefined ? [] : [`cluster ${name} is ${cordonText(cordon)} (starling uncordon ${name})`];
  });
}

/** The stages that wait for people, for a bake or for a check, and the windows that clusters wait for. */
function gateTexts({ rolloutState, stageRuns }: StatusFacts): readonly string[] {
  const gates = stageRunsIn(rolloutState, stageRuns).filter(({ phase }) => phase === "Gated" || phase === "Baking");
  const windows = [...namesHolding({ rolloutState, stageRuns }, "window")];
  return [
    ...gates.map(({ phase, message }) => (phase === "Gated" ? `waits for approvals: ${message}` : message)),
    ...windows.map((name) => `clusters wait for window ${name}`),
  ];
}

/** The clusters that people skipped in the last stage runs. */
function takenOutTexts({ rolloutState, stageRuns }: StatusFacts): readonly string[] {
  return takenOutOf(rolloutState, stageRuns).map(({ rollout, takenOut: { count, first } }) => {
    const names = named(
      first.map(({ cluster }) => cluster),
      count,
    );
    const why = first[0] === undefined ? "" : ` (${excerpt(first[0].reason, reasonShown)})`;
    const without = `${count === 1 ? "has" : "have"} not got rollout ${rollout}`;
    return `${names} ${without}${why}; to give it to one: starling rollout retry --cluster`;
  });
}

/** The changes that a guard withholds. */
function withheldBy({ rolloutState: { guard } }: StatusFacts): readonly WithheldChange[] {
  return guard?.withheld ?? [];
}

/** True when the freeze covers every cluster. */
function freezeIn({ freezeState, now }: StatusFacts): Freeze | undefined {
  return freezeState && freezeOfAll(freezeState, now);
}

/**
 * The counts of each stage run, otherwise of the clusters that the last one left behind; catch-ups; and drift as it was
 * counted last.
 */
function clustersOf({ rolloutState, stageRuns }: StatusFacts, before: OwnerStatus["clusters"]): ClusterTallies {
  const { waiting, changing, failed, away: unreachable = 0 } = rolloutState.catchUps;
  const counts = { waiting, changing, failed, unreachable, drifted: before?.drifted };
  for (const stage of rolloutState.stages) {
    const [stageRun, last] = [stageRunOf(stage, stageRuns), lastStageRunOf(stage, stageRuns)];
    const { current, members } = stage;
    counts.failed += last?.counts.Failed ?? 0;
    counts.unreachable += last?.counts.Unreachable ?? 0;
    // Slots do not count here: a failed cluster has one until its worker has finished, and a waiting one may have one
    // of another rollout.
    counts.changing += stageRun?.counts.Assigned ?? 0;
    counts.waiting += stageRun === undefined ? (current === undefined ? members : 0) : waitingOf(stageRun);
  }
  return clusterCounts(membersOfAll(rolloutState), counts);
}

interface Assessed {
  readonly state: OwnerState;
  readonly clusters: OwnerStatus["clusters"];
  readonly now: Date;
}

function readyCondition(row: OwnerRow, facts: StatusFacts, assessed: Assessed): Condition {
  const { state, now } = assessed;
  const status = state === "Complete" || state === "Drifted" ? "True" : "False";
  const before = row.status.conditions.find((other) => other.type === "Ready");
  const since = before?.status === status ? before.since : now.toISOString();
  return { type: "Ready", status, reason: reasonOf(state, facts), message: messageOf(row, facts, assessed), since };
}

function reasonOf(state: OwnerState, facts: StatusFacts): Reason | OwnerState {
  const { missing = [], unreadable = [] } = facts.rolloutState;
  switch (state) {
    case "Complete":
    case "Drifted":
      return "AllClustersReady";
    case "Waiting":
      return facts.desired.ok ? "NothingRolledOut" : facts.desired.reason;
    case "Deleting":
      return stalledStageRun(facts)?.reason === deletionFailed ? deletionFailed : state;
    case "Degraded":
      return missing.length > 0 ? "ClusterNotFound" : unreadable.length > 0 ? "NewerRow" : state;
    case "Rolling":
    case "RollingBack":
      return stageRunsIn(facts.rolloutState, facts.stageRuns).some(({ phase }) => phase === "Gated")
        ? "RolloutGated"
        : state;
    default:
      return state;
  }
}

function messageOf(row: OwnerRow, facts: StatusFacts, { state, clusters, now }: Assessed): string {
  const { missing = [], unreadable = [] } = facts.rolloutState;
  const counts = clusters === undefined ? "" : countsText(clusters);
  const selection = relationOf(row).clusters;
  switch (state) {
    case "Waiting":
      return facts.desired.ok ? "nothing was rolled out yet" : facts.desired.message;
    case "Halted":
    case "Stalled":
      return stalledStageRun(facts)?.message ?? barredText(facts.rolloutState) ?? "";
    case "Frozen": {
      const freeze = freezeIn(facts);
      return freeze === undefined ? "" : freezeText(freeze);
    }
    case "Held": {
      const hold = holdInForce(row, now);
      const texts = [
        hold === undefined ? "" : heldText(hold, keptBackBy(hold, facts.rolloutState)),
        ...rejectedTexts(facts),
        ...cordonTexts(facts),
        ...takenOutTexts(facts),
      ];
      return texts.filter((text) => text !== "").join("; ");
    }
    case "Guarded":
      return withheldBy(facts).map(withheldText).join("; ");
    case "Deleting":
      return deletionText(facts, counts);
    case "NoClusters":
      return `no registered cluster matches ${selectionText(selection)}; nothing is rolled out until one does`;
    case "ClusterNotFound":
      return `${notFoundText(missing)}; nothing is rolled out until ${missing.length === 1 ? "it is" : "one is"}`;
    case "Degraded":
      return [
        counts,
        ...behindTexts(row, facts),
        ...zoneTexts(facts),
        ...rejectedTexts(facts),
        ...cordonTexts(facts),
        ...takenOutTexts(facts),
        goneText(facts),
        notFoundText(missing),
        unreadableText(unreadable),
      ]
        .filter((part) => part !== "")
        .join("; ");
    default:
      return [counts, ...gateTexts(facts), ...cordonTexts(facts), unreadableText(unreadable)]
        .filter((part) => part !== "")
        .join("; ");
  }
}

function countsText({ selected, ready, drifted = 0 }: ClusterTallies): string {
  const text = `${ready} of ${selected} clusters ready`;
  return drifted === 0 ? text : `${text}, ${drifted} with drift that stays`;
}

/** Unhealthy clusters while nothing changes, since when and why, and what ends that. */
function behindTexts(
  { type, namespace, name }: OwnerRow,
  { settled, behind = [], stopped = 0, rolloutState: { unreadable = [] } }: StatusFacts,
): readonly string[] {
  const others = stopped === 1 ? "1 more cluster does not catch up" : `${stopped} more clusters do not catch up`;
  const because = stopped === 0 ? "" : `; ${others} because of that`;
  const text = (state: Behind["state"], ends: (first: string, count: number) => string) => {
    // Unreadable clusters have their own reason.
    const own = behind.filter((one) => one.state === state && !unreadable.includes(one.cluster));
    const [first] = own;
    if (first === undefined) return [];
    const count = Math.max(own.length, (settled?.[state] ?? 0) - (state === "unreachable" ? unreadable.length : 0));
    const { since, reason = "" } = first;
    const of = own.length === 1 ? "" : `${first.cluster} `;
    const why = since === undefined ? "" : ` (${of}since ${since}: ${excerpt(reason, reasonShown)})`;
    const names = own.map(({ cluster }) => cluster);
    const what = state === "failed" ? "failed" : count === 1 ? "does not answer" : "do not answer";
    return [`${named(names, count)} ${what}${why}${ends(first.cluster, count)}`];
  };
  const object = `${type.toLowerCase()}/${name} -n ${namespace}`;
  return [
    ...text("failed", () => `${because}; to try again: starling reconcile ${object}`),
    ...text("unreachable", (first, count) => {
      const again =
        count === 1 ? "and is given what it lacks when it does" : "and are given what they lack when they do";
      return `, ${again}; to go on without: starling delete cluster/${first} --cascade=orphan`;
    }),
  ];
}

/** The zones whose clusters could not be checked in the `reconcile` that has just ended. */
function zoneTexts({ rolloutState: { lately }, now }: StatusFacts): readonly string[] {
  return lately !== undefined && later(lately.at, lagSeconds) > now.toISOString() ? (lately.zones ?? []) : [];
}

/**
 * Each is a name in the rollout state and a row of its cluster, for as long as the cluster does not answer: frequent
 * renaming adds to them.
 */
function goneText({ rolloutState, desired, behind = [] }: StatusFacts): string {
  const kept = new Set(desired.ok ? desired.plan.templates.map(({ name }) => name) : rolloutState.templates);
  const { size } = new Set(rolloutState.templates).difference(kept);
  if (size === 0 || behind.every(({ state }) => state !== "unreachable")) return "";
  const [what, it] = size === 1 ? ["1 removed template is", "it"] : [`${size} removed templates are`, "them"];
  return `${what} remembered until each cluster that does not answer has deleted ${it}, or is unregistered`;
}

export function unreadableText(clusters: readonly string[]): string {
  if (clusters.length === 0) return "";
  const whose = `${clusters.length === 1 ? "cluster" : "clusters"} ${named(clusters)}`;
  return `rows of ${whose} were written by a newer version of Starling, and are left alone: update the stack`;
}

function notFoundText(missing: readonly string[]): string {
  if (missing.length === 0) return "";
  const one = missing.length === 1;
  return `${one ? "cluster" : "clusters"} ${named(missing)} ${one ? "is" : "are"} not registered`;
}

/** A rollout that waits before a stage because a removed stage had not passed it. */
export function barredText(rolloutState: RolloutStateRow): string | undefined {
  const barred = barredIn(rolloutState);
  if (barred === undefined) return undefined;
  const { rollout, removed, stage } = barred;
  return `nothing verified: ${rollout} had not passed stage ${removed}, which was removed, and does not go to ${stage}`;
}

/** Says why a deletion is not over, and how to continue without that. */
function deletionText(facts: StatusFacts, counts: string): string {
  const stalled = stalledStageRun(facts);
  if (stalled?.phase === "Halted") {
    const remedy = "fix that and reconcile, or delete it with --cascade=orphan to leave its objects where they are";
    return `${stalled.message}; ${remedy}`;
  }
  const stageRuns = stageRunsIn(facts.rolloutState, facts.stageRuns);
  const [size, done, away] = [
    stageRuns.reduce((sum, stageRun) => sum + stageRun.size, 0),
    stageRuns.reduce((sum, { counts: { Succeeded, Unchanged, Skipped } }) => sum + Succeeded + Unchanged + Skipped, 0),
    stageRuns.reduce((sum, stageRun) => sum + stageRun.counts.Unreachable, 0),
  ];
  if (size === 0) return counts;
  if (away === 0) return `${done} of ${size} clusters done`;
  const word = away === 1 ? "does" : "do";
  const names = stageRuns.flatMap((stageRun) => stageRun.away);
  const without = `to go on without: starling delete cluster/${names[0]} --cascade=orphan`;
  return `${done} of ${size} clusters done; ${named(names)} ${word} not answer, and the deletion waits; ${without}`;
}

function named(clusters: readonly string[], count = clusters.length): string {
  return firstOf(clusters, { most: namesShownInStatus, count });
}
