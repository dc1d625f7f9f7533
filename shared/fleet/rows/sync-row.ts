/**
 * One Sync on one cluster. The planner writes `desired`, the cluster's worker `observed`, `held` and `deaths`, and the
 * api `operations`, all under the row's one version. Attempts are numbered; an observation is only about the attempt
 * that it names.
 */

import { type ClusterCount, secondsOf } from "#shared/fleet/kinds/quantities.ts";
import type { ApplyOptions } from "#shared/fleet/kinds/sync-template.ts";
import { jittered, later } from "#shared/fleet/rows/due.ts";
import type { Freeze } from "#shared/fleet/rows/freezes-row.ts";
import type { Owner } from "#shared/fleet/rows/keys.ts";
import type { Act, Condition } from "#shared/fleet/rows/object-rows.ts";
import type { Row } from "#shared/fleet/rows/row.ts";
import type { ForeignObject } from "#shared/kube/membership.ts";
import type { Remembered } from "#shared/kube/parent-object.ts";

/** The planner's decision. */
export interface Assigned {
  /** `apply` the rendering, `delete` every member and the parent, or `orphan`: forget it and leave the objects. */
  readonly action: "apply" | "delete" | "orphan";
  /** Number of this assignment: grows by one each time the planner assigns, and never repeats. */
  readonly attempt: number;
  readonly revision: string;
  /** `sha256:<hex>` of the rendering; absent unless the action is `apply`. */
  readonly renderDigest?: string;
  /** Input of the rendering, and the name of the Source of its artifact, which is asked when the rendering is lost. */
  readonly input?: string;
  readonly source?: string;
  /** Objects that were left out of the rendering, with the reasons; the first few. */
  readonly leftOut?: readonly string[];
  readonly apply: ApplyOptions;
  /** Number of its rollout. */
  readonly rollout: number;
  readonly assignedAt: string;
  /** No worker begins before this time. */
  readonly startAt?: string;
  /** The windows over the cluster close then: no worker begins the attempt at or after this time. */
  readonly beginBefore?: string;
  /** The strictest of them bounds the number of objects that are pruned; absent without a guard. */
  readonly objectBounds?: readonly ClusterCount[];
  /** Hashes of the prunes that people let through although they are more. */
  readonly mayPrune?: readonly string[];
  /** The cluster was unhealthy before the assignment, with a rollout that its stage had passed. */
  readonly preexisting?: true;
  /** For a deletion: a person asked for it with a rollback, so that it goes on although the spec has the template. */
  readonly asked?: true;
  /** For a deletion: what was desired before, in case the deletion is withdrawn. */
  readonly instead?: Pick<Assigned, "revision" | "renderDigest" | "input" | "source" | "rollout">;
}

/** An assignment as the row stores it; see `lineage.ts`. */
export interface Desired extends Assigned {
  /** The token by which the cluster recognises this assignment. */
  readonly token: string;
  /** Tokens of earlier assignments, the newest first. */
  readonly earlier?: readonly string[];
  /** The cluster need not remember the Sync: it is new, or was to be deleted or forgotten before. */
  readonly anew?: true;
  /**
   * Digests of renderings that were assigned before, the newest last, and whose inventory was never seen stored whole:
   * the cluster may remember them, and have objects of them.
   */
  readonly tried?: readonly string[];
  /** Objects of attempts up to this one were left behind: Starling does not prune them. */
  readonly keptThrough?: number;
}

/**
 * - `Applying`: work of this attempt has begun and goes on;
 * - `Verifying`: everything was applied, not everything is ready;
 * - `Ready`: applied, and every object was ready when last seen;
 * - `Retrying`: an error that may pass; `nextAt` says when the next try is;
 * - `Failed`: a final error, or an object that kstatus calls Failed for long enough;
 * - `Unreachable`: the cluster does not answer, or it is not the cluster it was;
 * - `Reachable`: it answers again; the planner decides when the attempt starts over;
 * - `Gone`: deleted or orphaned, as desired.
 */
export type Phase = "Applying" | "Verifying" | "Ready" | "Retrying" | "Failed" | "Unreachable" | "Reachable" | "Gone";

/** Number of objects that a row names. */
export const maxProblems = 5;

export interface ObjectProblem {
  /** `Deployment shop/web` */
  readonly object: string;
  readonly reason: string;
  readonly message: string;
}

/** The result of the last inspection that found drift. */
export interface Drift {
  readonly at: string;
  readonly objects: number;
  readonly corrected: boolean;
  /** The objects, each with the changed fields and their managers; at most `maxProblems`. */
  readonly named?: readonly ObjectProblem[];
}

/** A warning of the API server about an object that it accepted. */
export interface ObjectWarning {
  /** `Ingress shop/web and 2 more` */
  readonly object: string;
  readonly message: string;
}

/** A person has seen these foreign members and wants them deleted: exactly these uids. */
export interface PruneAct extends Act {
  readonly objects: readonly Pick<ForeignObject, "id" | "uid">[];
}

/** A rendering that the cluster holds whole, and whose inventory is stored. */
export interface Applied {
  readonly renderDigest: string;
  readonly revision: string;
  readonly attempt: number;
  readonly at: string;
  /** Set when the cluster holds the objects of an install; absent for those of an upgrade. */
  readonly event?: "install";
  /** Digests of renderings that may have left objects which this attempt did not search for; absent: none. */
  readonly unsettled?: readonly string[];
}

/** A prune that a guard withholds. */
export interface GuardedPrune {
  /** Number of objects that would be pruned, and of those that the Sync had before. */
  readonly count: number;
  readonly members: number;
  readonly allowed: number;
  /** It covers the Sync's name and every object, and no cluster. */
  readonly hash: string;
}

export interface Observed {
  /** The attempt that this observation is about. */
  readonly attempt: number;
  readonly phase: Phase;
  readonly reason: string;
  readonly message: string;
  /** When a worker first worked on this attempt. */
  readonly startedAt: string;
  /** When this attempt was first ready: from then on corrections need no turn. */
  readonly readyAt?: string;
  /** When this phase began with this reason. */
  readonly since: string;
  /** When the cluster was last checked. */
  readonly at: string;
  /** When to check again while the phase is not final; for `Ready` and `Failed` the interval decides. */
  readonly nextAt?: string;
  /** Consecutive tries without progress. */
  readonly tries: number;
  /** Since when kstatus reports Failed without interruption. */
  readonly failedSince?: string;
  /** The largest numbers of applied and ready objects in this attempt, and when one of them last grew. */
  readonly progress?: { readonly at: string; readonly applied: number; readonly ready: number };
  /** When the store last denied access for this attempt: its deadline begins again then. */
  readonly deniedAt?: string;
  /** Uid of `kube-system` of the observed cluster, once it was asked. */
  readonly clusterUid?: string;
  /** Token of the newest assignment that began in the cluster. */
  readonly claimed?: string;
  /** The cluster's memory of other rows than these, when it was found. */
  readonly remembered?: Remembered;
  /** The rendering that the cluster holds; set when every object of it was applied. */
  readonly applied?: Applied;
  /** When this attempt was last compared with the rendering; absent before the first time. */
  readonly inspectedAt?: string;
  /** Key of the inventory blob; absent when there are no members. */
  readonly inventory?: string;
  readonly objects: {
    readonly total: number;
    readonly ready: number;
    readonly failed: number;
    readonly foreign: number;
  };
  /** The objects that `objects.foreign` counts, members first, at most twenty; absent when there are none. */
  readonly foreign?: readonly ForeignObject[];
  /** Set when the inventory was lost, and rebuilt from the cluster. */
  readonly rebuilt?: {
    readonly at: string;
    /** `BlobNotFound`, `BlobCorrupt`. */
    readonly reason: string;
    readonly message: string;
    /** Number of members that are recorded again. */
    readonly members: number;
    /** Number of members that no known rendering accounts for: they are pruned on request only. */
    readonly foreign: number;
  };
  /** Worst first, at most `maxProblems`. */
  readonly problems: readonly ObjectProblem[];
  /** Warnings of this attempt's applies, each text once; at most `maxProblems`. */
  readonly warnings?: readonly ObjectWarning[];
  /** Objects that are no longer corrected, because somebody undoes it each time; at most five. */
  readonly leftAlone?: readonly ObjectProblem[];
  readonly drift?: Drift;
  /** The attempt has failed because of the guard of the Sync's objects. */
  readonly guardedPrune?: GuardedPrune;
  /** A suspend kept the worker from a write. */
  readonly withheld?: "Suspended";
  /** Number of the newest `prune` that was carried out, as far as it could be. */
  readonly handledPrune?: number;
  /** The row's `reconcile` when the cluster was checked: that request is done. */
  readonly handledReconcile?: number;
  /** True while the requested check neither compared nor corrected anything: the next one that can does both. */
  readonly owesReconcile?: true;
  readonly fence: number;
  readonly conditions: readonly Condition[];
}

export interface SyncRow extends Row {
  readonly type: "SyncOnCluster";
  readonly cluster: string;
  readonly namespace: string;
  /** `<group>.<template>`, or the name of the user's Sync. */
  readonly name: string;
  /**
   * Derived from installation, namespace, name and cluster, so that the objects are found again after a loss of the
   * table.
   */
  readonly uid: string;
  readonly owner: Owner;
  /** Uid of the owner that assigned last: another owner of the same name does not own these objects. */
  readonly ownerUid: string;
  readonly desired: Desired;
  readonly observed?: Observed;
  /**
   * Set by the planner when the Sync lost its slot before it was done: it is checked, and not written to, until the
   * next assignment.
   */
  readonly paused?: Paused;
  /** Number of the owner's newest `reconcile` that the planner passed on. */
  readonly reconcile?: number;
  /** Acts of people on this Sync on this cluster; written by `api`. */
  readonly operations?: { readonly prune?: PruneAct };
  /**
   * The last acceptance of what the cluster remembers of other rows, and that memory. Written by `api`, and after a
   * `recover --all` by the planner.
   */
  readonly recovered?: {
    readonly by: string;
    readonly at: string;
    readonly reason?: string;
    readonly remembered: Remembered;
  };
  readonly held?: Held;
  readonly deaths?: Deaths;
}

/** Why the newest assignment is paused, and since when. */
export interface Paused {
  readonly reason: string;
  readonly at: string;
  /** Name of the freeze that ended its turn: it waits for another turn. */
  readonly freeze?: string;
  /** No worker began the attempt before the windows over the cluster closed: it waits for another turn. */
  readonly window?: true;
  /** No worker had begun the attempt when the cluster was cordoned: it waits for another turn. */
  readonly cordon?: true;
  /** No worker had begun the attempt when a person skipped the cluster: it waits for a retry or a newer rollout. */
  readonly skip?: true;
  /** No worker had begun the attempt when its rollout was rejected: it waits for another rollout, or an unreject. */
  readonly rejected?: true;
  /**
   * The zone of the cluster, when no worker of it has run for as long as the attempt may take: it counts as unreachable,
   * and waits for another turn after a worker has reached the cluster.
   */
  readonly zone?: string;
}

/** True when the paused attempt waits for another turn of the planner; otherwise it has failed. */
export function waitsForTurn(paused: Paused): boolean {
  return paused.freeze !== undefined || paused.zone !== undefined || isHeldBack(paused);
}

/** Nobody has begun the paused attempt. Until its next turn, the drift of what was applied before is corrected. */
export function isHeldBack({ window, cordon, skip, rejected }: Paused): boolean {
  return window === true || cordon === true || skip === true || rejected === true;
}

/**
 * True when no worker may begin the newest assignment any more, because the windows over the cluster have closed. A
 * worker that died at it has begun it.
 */
export function isTooLate({ desired, observed, deaths }: Pick<SyncRow, "desired" | "observed" | "deaths">, now: Date) {
  const { attempt, beginBefore } = desired;
  if (beginBefore === undefined || observed?.attempt === attempt) return false;
  const isBegun = deaths?.attempt === attempt;
  return !isBegun && beginBefore <= now.toISOString();
}

/** Written by the worker that finds the lease of a worker that died at this Sync. */
export interface Deaths {
  /** The desired state then; see `desiredKey`. */
  readonly desired: string;
  /** The attempt of the last death; absent when it is not known. */
  readonly attempt?: number;
  /** When the last death was found. */
  readonly at: string;
  /** Number of consecutive deaths of workers that had begun nothing else: other deaths may have another cause. */
  readonly alone: number;
}

/** Seconds after a death for which the Sync is worked on alone. */
const suspectSeconds = 86_400;

/** The desired state that deaths count for: another rendering starts without them, another attempt of the same does not. */
export function desiredKey({ desired }: Pick<SyncRow, "desired">): string {
  return desired.renderDigest ?? desired.action;
}

/** The deaths that count for the present desired state. */
export function deathsAt(row: Pick<SyncRow, "desired" | "deaths">, now: Date): Deaths | undefined {
  const { deaths } = row;
  if (deaths?.desired !== desiredKey(row) || later(deaths.at, suspectSeconds) <= now.toISOString()) return undefined;
  return deaths;
}

/** Written by the worker: a freeze kept it from a write that the cluster needs. */
export interface Held extends Pick<Freeze, "name" | "by" | "reason" | "until"> {
  /** The attempt that this is about. */
  readonly attempt: number;
  readonly since: string;
  /** When the worker last found it so. */
  readonly at: string;
}

/** The freeze that holds the newest assignment, as far as the worker knows. */
export function holdOf({ held, desired }: Pick<SyncRow, "held" | "desired">): Held | undefined {
  return held?.attempt === desired.attempt && desired.action !== "orphan" ? held : undefined;
}

/**
 * The assignment that forgets a Sync and leaves its objects: no worker carries it out. Its row is kept, because
 * attempts must never repeat: the cluster remembers the highest number, and refuses a lower one.
 */
export function orphaning(before: Desired, at: { readonly rollout: number; readonly assignedAt: string }): Assigned {
  const { revision, apply, attempt } = before;
  return { action: "orphan", attempt: attempt + 1, revision, apply, ...at };
}

/**
 * True when the observation is about another cluster than the expected one, or about an unknown one: nothing recorded
 * there justifies an action on this cluster.
 */
export function isOfAnother(row: Pick<SyncRow, "observed">, clusterUid: string | undefined): boolean {
  const { observed } = row;
  if (observed === undefined) return false;
  if (observed.clusterUid !== undefined) return observed.clusterUid !== clusterUid;
  return observed.inventory !== undefined || observed.applied !== undefined;
}

/**
 * Digests of the renderings that a row refers to: the desired one, or the one before a deletion; the one that the
 * cluster holds; and those that may have left objects.
 */
export function renderingsNamed({ desired, observed, recovered }: NamingRow): ReadonlySet<string> {
  const { applied, remembered } = observed ?? {};
  const accepted = applied === undefined ? recovered?.remembered.renderDigest : undefined;
  const one = [desired.renderDigest, desired.instead?.renderDigest, applied?.renderDigest, remembered?.renderDigest];
  // Leftovers of earlier renderings are recorded, or listed as unsettled.
  const tried = applied?.attempt === desired.attempt ? [] : (desired.tried ?? []);
  const all = [...one, accepted, ...tried, ...(applied?.unsettled ?? [])];
  return new Set(all.filter((digest) => digest !== undefined));
}

type NamingRow = Pick<SyncRow, "desired" | "observed" | "recovered">;

/** True while the worker has not yet finished the newest assignment. */
export function isOutstanding(row: Pick<SyncRow, "desired" | "observed">): boolean {
  if (row.desired.action === "orphan") return false;
  return row.observed?.attempt !== row.desired.attempt || !isSettled(row.observed.phase);
}

/** True while the store denies the worker access; nothing is known of the cluster then. */
export function isDenied(observed: Observed | undefined): boolean {
  return observed?.phase === "Retrying" && observed.reason === "BlobDenied";
}

function isSettled(phase: Phase): boolean {
  return phase === "Ready" || phase === "Failed" || phase === "Gone";
}

/**
 * True while the newest assignment waits because the cluster did not answer. The observation of an earlier assignment
 * says nothing about this one: a cluster that did not answer then may answer now.
 */
export function isAway({ desired, observed }: Pick<SyncRow, "desired" | "observed">): boolean {
  if (observed?.attempt !== desired.attempt) return false;
  return observed.phase === "Unreachable" || observed.phase === "Reachable";
}

/** True while a requested check has not happened yet. */
export function isAsked({ reconcile, observed }: Pick<SyncRow, "observed" | "reconcile">): boolean {
  return reconcile !== undefined && reconcile !== observed?.handledReconcile;
}

/** False until the request is done: everything is compared, and corrected whatever was undone before. */
export function isReconciled(row: Pick<SyncRow, "observed" | "reconcile">): boolean {
  return !isAsked(row) && row.observed?.owesReconcile === undefined;
}

/** True when foreign members are to be pruned, and the Sync is far enough: the cluster has what git has. */
export function isPruneAsked({ desired, observed, operations }: Pick<SyncRow, "desired" | "observed" | "operations">) {
  const asked = operations?.prune?.number;
  if (asked === undefined || asked === observed?.handledPrune) return false;
  return desired.action === "delete" || observed?.applied?.attempt === desired.attempt;
}

/**
 * Whether an inspection is due while the objects are not ready: ready objects may change, and one object may never be
 * ready.
 */
export function isInspectionDue(row: Pick<SyncRow, "desired" | "observed" | "uid" | "reconcile">, now: Date): boolean {
  const { desired, observed } = row;
  if (observed === undefined || desired.apply.drift === "off") return false;
  if (!isReconciled(row)) return true;
  const last = observed.inspectedAt ?? observed.applied?.at;
  return last !== undefined && later(last, jittered(intervalOf(desired), `${row.uid}${last}`)) <= now.toISOString();
}

/** Seconds between two checks of a settled Sync. */
export function intervalOf({ apply }: Pick<Desired, "apply">): number {
  return secondsOf(apply.interval);
}
