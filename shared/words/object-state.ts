import type { OwnerInFleet } from "#shared/fleet/api/fleet-overview.ts";
import type { AnyObject, ClusterObject, FrozenBy, ReceiverObject, SyncStatus } from "#shared/fleet/api/objects.ts";
import type { RolloutPhase } from "#shared/fleet/api/rollout-phase.ts";
import { isUnreadable, type ListedObject, type UnreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import { endText } from "#shared/fleet/rows/act-text.ts";
import {
  type Condition,
  type Cordoning,
  newestAct,
  type Operations,
  type OwnerStatus,
  type Suspension,
} from "#shared/fleet/rows/object-rows.ts";
import type { Reason } from "#shared/kube/reasons.ts";
import { revisionText } from "#shared/words/revision-text.ts";
import { hasDesired, isGood, isUnderWay, needsSomebody, stateRank } from "#shared/words/state-words.ts";

/** One state word for an object, since when it holds, when the object was last checked, and a remark. */
export interface ObjectState {
  readonly word: string;
  readonly since?: string;
  readonly seenAt?: string;
  /** Empty when nothing needs attention. */
  readonly remark: string;
}

export function objectState(object: ListedObject): ObjectState {
  if (isUnreadable(object)) return { word: object.status.state, remark: unreadableText(object) };
  const about = { obstacle: obstacleOf(planOf(object)), unseen: () => unseenText(object) };
  return withActs(object.operations, stateOfKind(object), about);
}

/** The state of a SyncGroup or of a Sync that a user wrote, as the planner reports it. */
export function ownerState(owner: OwnerInFleet | UnreadableObject): ObjectState {
  if (isUnreadable(owner)) return { word: owner.status.state, remark: unreadableText(owner) };
  const { operations = {}, status, metadata } = owner;
  const { generation } = metadata;
  const unseen = () => unseenOf({ generation, seen: status, isDone: isPlanned(operations, status) });
  return withActs(operations, fromOwner(status), { obstacle: obstacleOf(status), unseen });
}

/** A user's operations take precedence over the observed state. */
function withActs(
  { deletion, suspended }: Operations = {},
  state: ObjectState,
  { obstacle, unseen }: { readonly obstacle: string; readonly unseen: () => string },
): ObjectState {
  if (deletion !== undefined) {
    const held = suspended === undefined ? obstacle : `the deletion waits while it is suspended ${actText(suspended)}`;
    return { word: "Deleting", since: deletion.at, remark: [actText(deletion), held].filter(Boolean).join("; ") };
  }
  if (suspended !== undefined) {
    const problem = needsSomebody(state.word) ? state.remark : "";
    const remark = [actText(suspended), problem].filter(Boolean).join("; ");
    return { ...state, word: "Suspended", since: suspended.at, remark };
  }
  const remark = hasDesired(state.word) ? unseen() : "";
  return remark === "" ? state : { ...state, word: "Reconciling", remark };
}

function unreadableText({ status }: UnreadableObject): string {
  return status.conditions.map(({ reason, message }) => reasonText(reason, message)).join("; ");
}

/** Whether the status is about an older version of the object. */
export function isUnseen(object: ListedObject): boolean {
  return !isUnreadable(object) && unseenText(object) !== "";
}

/** The requests after the status was written. */
function unseenText(object: AnyObject): string {
  const { generation } = object.metadata;
  const { kind } = object;
  const seen = kind === "Source" || kind === "ClusterDiscovery" ? object.status : planOf(object);
  const operations = object.operations ?? {};
  const isDone =
    object.kind === "Source"
      ? (operations.reconcile?.number ?? 0) <= (object.status.handledReconcile ?? 0)
      : kind === "ClusterDiscovery" || isPlanned(operations, planOf(object));
  return unseenOf({ generation, seen, isDone });
}

function isPlanned(operations: Operations, plan: OwnerStatus | undefined): boolean {
  return (newestAct(operations) ?? 0) <= (plan?.observedOperation ?? 0);
}

function unseenOf(about: {
  readonly generation: number | undefined;
  readonly seen: { readonly observedGeneration?: number } | undefined;
  readonly isDone: boolean;
}): string {
  const { generation, seen, isDone } = about;
  if (seen === undefined || generation === undefined) return "";
  if (seen.observedGeneration !== generation) return `generation ${generation} has not been processed yet`;
  return isDone ? "" : "the last request has not been processed yet";
}

/** The planner's status of an object that a user wrote. */
export function planOf(object: ListedObject): OwnerStatus | undefined {
  if (isUnreadable(object)) return undefined;
  return object.kind === "Sync" ? object.status.plan : object.kind === "SyncGroup" ? object.status : undefined;
}

/** Whether a user has to act: the state is bad, or the object waits for something that does not come by itself. */
export function needsYou(word: string, plan: WithConditions): boolean {
  if (needsSomebody(word) || word === "Guarded") return true;
  return word === "Waiting" ? hasReason(plan, "SourceNotFound") : isUnderWay(word) && isGated(plan);
}

type WithConditions = Pick<OwnerStatus, "conditions"> | undefined;

/** Whether a stage of the group waits for approvals. */
function isGated(plan: WithConditions): boolean {
  return hasReason(plan, "RolloutGated");
}

function hasReason(plan: WithConditions, asked: Reason): boolean {
  return plan?.conditions.some(({ reason }) => reason === asked) === true;
}

/** The reason why a deletion waits, according to the planner. */
function obstacleOf(plan: OwnerStatus | undefined): string {
  const ready = plan?.conditions.find((condition) => condition.type === "Ready");
  return plan?.state === "Deleting" ? (ready?.message ?? "") : "";
}

function stateOfKind(object: AnyObject): ObjectState {
  switch (object.kind) {
    case "Source":
      return fromReady(object.status.conditions, { seenAt: object.status.attemptedAt, untouched: "Pending" });
    case "Receiver":
      return fromReceiver(object);
    case "ClusterDiscovery":
      return fromReady(object.status.conditions, { seenAt: object.status.scannedAt, untouched: "Pending" });
    case "Cluster":
      return fromCluster(object);
    case "ClusterValues":
      return {
        word: object.status.clusters === 0 ? "NoClusters" : "Ready",
        ...optional("since", object.metadata.creationTimestamp),
        remark: "",
      };
    case "Window":
      return {
        word: object.status.clusters === 0 ? "NoClusters" : "Ready",
        ...optional("since", object.metadata.creationTimestamp),
        remark: windowRemark(object.status),
      };
    case "SyncGroup":
      return fromOwner(object.status);
    case "Sync": {
      return fromSync(object.status);
    }
    case "Rollout": {
      const { phase, reason, message, transitions, endedAt, size } = object.status;
      // The message of a rejection begins with the word.
      const text = phase === "Rejected" ? message : reasonText(reason, message);
      const reachedNobody = phase === "Complete" && size === 0 && object.spec.trigger !== "deletion";
      return {
        word: reachedNobody ? "NoClusters" : phase,
        ...optional("since", endedAt ?? transitions.at(-1)?.at ?? object.metadata.creationTimestamp),
        remark: unfinished.has(phase) ? text : reachedNobody ? message : "",
      };
    }
  }
}

/** A Receiver whose Sources do not exist wakes nothing. */
function fromReceiver({ metadata, spec, status }: ReceiverObject): ObjectState {
  const since = optional("since", metadata.creationTimestamp);
  const lacking = spec.sources.filter((source) => typeof source === "string" && !status.sources.includes(source));
  const remark = lacking.length === 0 ? "" : `no Source ${lacking.join(", ")}`;
  if (status.sources.length > 0) return { word: "Ready", ...since, remark };
  return { word: "NotReady", ...since, remark: remark === "" ? "no Source has the labels of its selector" : remark };
}

function windowRemark({ open, nextOpening }: Extract<AnyObject, { kind: "Window" }>["status"]): string {
  return open || nextOpening !== undefined ? "" : "never opens again";
}

/** Phases whose reason users want to see. */
const unfinished: ReadonlySet<RolloutPhase> = new Set([
  "Halted",
  "Stalled",
  "Waiting",
  "RolledBack",
  "Superseded",
  "Rejected",
]);

function fromOwner(status: {
  readonly state?: string;
  readonly stateSince?: string;
  readonly asOf?: string;
  readonly conditions: readonly Condition[];
}): ObjectState {
  const ready = status.conditions.find((condition) => condition.type === "Ready");
  const word = status.state ?? "Pending";
  const isQuiet = isGood(word) || (isUnderWay(word) && !isGated(status));
  return {
    word,
    ...optional("since", status.stateSince ?? ready?.since),
    ...optional("seenAt", status.asOf),
    remark: ready === undefined || isQuiet ? "" : ready.message,
  };
}

/** The author of the freeze, the reason, and the command that ends it. */
export function frozenText({ name, by, reason, until }: FrozenBy): string {
  return `by ${shortPrincipal(by)}: ${reason}${endText({ until })}; run \`starling thaw ${name}\``;
}

/** The person who cordoned the cluster, the reason, and the command that ends it. */
export function cordonedText(cluster: string, { by, reason, until }: Cordoning): string {
  const why = reason === undefined ? "" : `: ${reason}`;
  return `by ${shortPrincipal(by)}${why}${endText({ until })}; run \`starling uncordon ${cluster}\``;
}

function fromSync(status: SyncStatus): ObjectState {
  const { observed, state, desired, plan, outOfSync, frozen, paused, conditions } = status;
  const seen = optional("seenAt", observed?.at);
  if (frozen !== undefined) return { word: "Frozen", since: frozen.since, ...seen, remark: frozenText(frozen) };
  if (plan !== undefined && state === plan.state) return { ...fromOwner(plan), ...seen };
  if (desired === undefined && plan === undefined) return neverAssigned(state, conditions);
  if (state === "Rejected" && paused !== undefined)
    return { word: state, since: paused.at, ...seen, remark: paused.reason };
  const current = observed !== undefined && observed.attempt === desired?.attempt;
  // A later report of a worker is newer than the reason of the planner.
  if (paused?.zone !== undefined && state === "Unreachable" && !(current && observed.phase === "Unreachable"))
    return { word: state, since: paused.at, ...seen, remark: paused.reason };
  const behind =
    outOfSync === undefined
      ? ""
      : `runs ${revisionText(desired?.revision)}, desired ${revisionText(outOfSync.revision)}: ${outOfSync.reason}`;
  const remark = state === "Drifted" ? driftText(observed, conditions) : behind;
  return {
    word: state,
    ...optional("since", endedAt(status) ?? (current ? observed.since : desired?.assignedAt)),
    ...seen,
    remark:
      current && state !== "Ready" && state !== "Drifted" && outOfSync === undefined
        ? reasonText(observed.reason, observed.message)
        : remark,
  };
}

/** When the planner ended the attempt as failed; undefined when the worker had found it failed before. */
function endedAt({ state, observed, desired, paused }: SyncStatus): string | undefined {
  if (state !== "Failed" || paused === undefined) return undefined;
  const isKnown = observed?.phase === "Failed" && observed.attempt === desired?.attempt;
  return isKnown && observed.since < paused.at ? undefined : paused.at;
}

/** A Sync that was never assigned to its cluster. Only the planner knows why. */
function neverAssigned(word: string, conditions: readonly Condition[]): ObjectState {
  const { since, reason = "", message = "" } = conditions.find(({ type }) => type === "Ready") ?? {};
  return { word, ...optional("since", since), remark: reasonText(reason === word ? "" : reason, message) };
}

/** Drift that is not corrected: an object that is left alone, or the result of the last comparing check. */
function driftText(observed: SyncStatus["observed"], conditions: SyncStatus["conditions"]): string {
  const { drift, leftAlone = [] } = observed ?? {};
  const [left] = leftAlone;
  if (left !== undefined) return `${left.object} has drifted: ${left.message}`;
  const isDrifted = conditions.some(({ type, status }) => type === "Drifted" && status === "True");
  if (!isDrifted || drift === undefined) return "";
  return `${drift.objects} ${drift.objects === 1 ? "object has" : "objects have"} drifted, and Starling does not correct the drift`;
}

/** States that last until a user acts, or until the Sync's turn. */
const settledWords: ReadonlySet<string> = new Set(["OutOfSync", "Drifted", "Rejected"]);

/** A cluster without assignments was never contacted. A cluster that answers has the worst state of its Syncs. */
function fromCluster({ metadata: { name }, status }: ClusterObject): ObjectState {
  const state = unfrozenState(status);
  const { frozen, cordoned } = status;
  if ((frozen ?? cordoned) === undefined || needsSomebody(state.word)) return state;
  if (frozen !== undefined) return { ...state, word: "Frozen", remark: frozenText(frozen) };
  return cordoned === undefined
    ? state
    : { ...state, word: "Cordoned", since: cordoned.at, remark: cordonedText(name, cordoned) };
}

function unfrozenState({ conditions, lastSeenAt, syncs, discovered }: ClusterObject["status"]): ObjectState {
  const { goneSince } = discovered ?? {};
  if (goneSince !== undefined) {
    return { word: "Unreachable", since: goneSince, remark: "ClusterGone: EKS does not know the cluster any more" };
  }
  const reachable = conditions.find((condition) => condition.type === "Reachable");
  const worst = [...(syncs?.others ?? [])].sort((a, b) => stateRank(a.state) - stateRank(b.state))[0];
  const remark = worst === undefined ? "" : `${worst.count} ${worst.state}: ${worst.example}`;
  if (reachable === undefined)
    return { word: worst !== undefined && needsSomebody(worst.state) ? "Degraded" : "Pending", remark };
  const seen = { since: reachable.since, ...optional("seenAt", lastSeenAt) };
  if (reachable.status === "False") {
    return { ...seen, word: "Unreachable", remark: reasonText(reachable.reason, reachable.message) };
  }
  if (worst === undefined) return { ...seen, word: "Ready", remark };
  const word = needsSomebody(worst.state) ? "Degraded" : settledWords.has(worst.state) ? worst.state : "Reconciling";
  return { ...seen, word, remark };
}

function fromReady(
  conditions: readonly Condition[],
  { seenAt, untouched }: { readonly seenAt: string | undefined; readonly untouched: string },
): ObjectState {
  const ready = conditions.find((condition) => condition.type === "Ready");
  if (ready === undefined) return { word: untouched, ...optional("seenAt", seenAt), remark: "" };
  const word = ready.status === "True" ? "Ready" : ready.status === "False" ? "NotReady" : "Unknown";
  return {
    word,
    since: ready.since,
    ...optional("seenAt", seenAt),
    remark: ready.status === "True" ? "" : reasonText(ready.reason, ready.message),
  };
}

/** `by sre/ana: INC-4711; by sre/bo`: the last part of each principal's ARN, and each reason. */
export function actText(act: Suspension): string {
  const said = [act, ...(act.again ?? [])]
    .map(({ by, reason }) => `by ${shortPrincipal(by)}${reason === undefined ? "" : `: ${reason}`}`)
    .join("; ");
  return `${said}${endText(act)}`;
}

export function shortPrincipal(arn: string): string {
  const resource = arn.split(":").at(-1) ?? arn;
  return resource.replace(/^(assumed-role|user|role)\//, "");
}

export function reasonText(reason: string, message: string): string {
  if (message === "") return reason;
  return reason === "" ? message : `${reason}: ${message}`;
}

function optional<K extends string>(key: K, value: string | undefined): { readonly [P in K]?: string } {
  return value === undefined ? {} : ({ [key]: value } as { readonly [P in K]: string });
}
