/**
 * One Sync on one cluster: `desired` is written by the planner, `observed` with `held` and `deaths` by the cluster's worker,
 * `operations` by the api, all under the row's one version. Attempts are numbered; an observation is about the attempt it
 * names and no other.
 */

import { secondsOf } from "#shared/fleet/kinds/quantities.ts";
import type { ApplyOptions } from "#shared/fleet/kinds/sync-template.ts";
import { jittered, later } from "#shared/fleet/rows/due.ts";
import type { Freeze } from "#shared/fleet/rows/freezes-row.ts";
import type { Owner } from "#shared/fleet/rows/keys.ts";
import type { Act, Condition } from "#shared/fleet/rows/object-rows.ts";
import type { Row } from "#shared/fleet/rows/row.ts";
import type { ForeignObject } from "#shared/kube/membership.ts";
import type { Remembered } from "#shared/kube/parent-object.ts";

/** What the planner decides. */
export interface Assigned {
  /** `apply` the rendering, `delete` every member and the parent, or `orphan`: forget it and leave the objects. */
  readonly action: "apply" | "delete" | "orphan";
  /** Number of this assignment: grows by one each time the planner assigns, never repeats. */
  readonly attempt: number;
  readonly revision: string;
  /** `sha256:<hex>` of the rendering; absent unless the action is `apply`. */
  readonly renderDigest?: string;
  /** What the rendering was made from, and the name of the Source of its artifact: whom to ask when it is lost. */
  readonly input?: string;
  readonly source?: string;
  /** What was left out of the rendering, and why, in words; the first few. */
  readonly leftOut?: readonly string[];
  readonly apply: ApplyOptions;
  /** Number of the content that this is of. */
  readonly rollout: number;
  readonly assignedAt: string;
  /** Nobody begins before. */
  readonly startAt?: string;
  /** The cluster was not ready before it, on a content that its stage had passed. */
  readonly preexisting?: true;
  /** Of a deletion: what was wanted before, for when it is taken back. */
  readonly instead?: Pick<Assigned, "revision" | "renderDigest" | "input" | "source" | "rollout">;
}

/** An assignment as the row holds it; see `lineage.ts`. */
export interface Desired extends Assigned {
  /** By what the cluster knows this assignment. */
  readonly token: string;
  /** Those of the assignments before, the newest first. */
  readonly earlier?: readonly string[];
  /** The cluster need not remember the Sync: it is new, or was to be deleted or forgotten before. */
  readonly anew?: true;
  /**
   * Digests of renderings that were assigned before, the newest last, and whose inventory nobody has seen stored whole:
   * the cluster may remember them, and have objects of them.
   */
  readonly tried?: readonly string[];
  /** What was written up to this attempt was left to whoever has it: nothing of it is ours to prune. */
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

/** How many objects are named in a row. */
export const maxProblems = 5;

export interface ObjectProblem {
  /** `Deployment shop/web` */
  readonly object: string;
  readonly reason: string;
  readonly message: string;
}

/** What the last look that found drift found. */
export interface Drift {
  readonly at: string;
  readonly objects: number;
  readonly corrected: boolean;
  /** By name, each with what has changed and by whom; at most `maxProblems`. */
  readonly named?: readonly ObjectProblem[];
}

/** What the API server said of an object that it took all the same. */
export interface ObjectWarning {
  /** `Ingress shop/web and 2 more` */
  readonly object: string;
  readonly message: string;
}

/** Somebody has been shown these foreign members, and wants them gone: by uid, and nothing else. */
export interface PruneAct extends Act {
  readonly objects: readonly Pick<ForeignObject, "id" | "uid">[];
}

/** A rendering that the cluster holds whole, and whose inventory is stored. */
export interface Applied {
  readonly renderDigest: string;
  readonly revision: string;
  readonly attempt: number;
  readonly at: string;
  /** What it holds of a rendering that has other objects for an upgrade; absent: those of an upgrade. */
  readonly event?: "install";
  /** Digests of renderings that may have left objects which this attempt did not look for; absent: none. */
  readonly unsettled?: readonly string[];
}

export interface Observed {
  /** The attempt this is about. */
  readonly attempt: number;
  readonly phase: Phase;
  readonly reason: string;
  readonly message: string;
  /** When this attempt was first worked on. */
  readonly startedAt: string;
  /** When this attempt was first seen ready: from then on no turn is needed to put back what changes. */
  readonly readyAt?: string;
  /** When this phase was entered with this reason. */
  readonly since: string;
  /** When the cluster was last looked at. */
  readonly at: string;
  /** When to look again while the phase is not final; for `Ready` and `Failed` the interval decides. */
  readonly nextAt?: string;
  /** Consecutive tries without progress. */
  readonly tries: number;
  /** Since when kstatus says Failed without interruption. */
  readonly failedSince?: string;
  /** The most that this attempt had applied, and found ready, and when either grew last. */
  readonly progress?: { readonly at: string; readonly applied: number; readonly ready: number };
  /** When the store last denied what this attempt needs: its deadline begins anew then. */
  readonly deniedAt?: string;
  /** uid of `kube-system` of the cluster that the rest is about, once that was asked. */
  readonly clusterUid?: string;
  /** Token of the newest assignment that was begun in the cluster. */
  readonly claimed?: string;
  /** What the cluster remembers of other rows than these, which it was found to be given. */
  readonly remembered?: Remembered;
  /** The rendering the cluster holds: set when every object of it was applied. */
  readonly applied?: Applied;
  /** When this attempt was last compared with what was applied; absent until it was. */
  readonly inspectedAt?: string;
  /** Key of the inventory blob; absent when there are no members. */
  readonly inventory?: string;
  readonly objects: {
    readonly total: number;
    readonly ready: number;
    readonly failed: number;
    readonly foreign: number;
  };
  /** Those that `objects.foreign` counts, members first, at most twenty; absent when there are none. */
  readonly foreign?: readonly ForeignObject[];
  /** The inventory was lost, and made anew of what is in the cluster. */
  readonly rebuilt?: {
    readonly at: string;
    /** `BlobNotFound`, `BlobCorrupt`. */
    readonly reason: string;
    readonly message: string;
    /** Members that are recorded again. */
    readonly members: number;
    /** Members that no known rendering accounts for: they are pruned on request only. */
    readonly foreign: number;
  };
  /** Worst first, at most `maxProblems`. */
  readonly problems: readonly ObjectProblem[];
  /** Of the applies of this attempt, each text once; at most `maxProblems`. */
  readonly warnings?: readonly ObjectWarning[];
  /** Objects that are not put back any more because somebody undoes it each time; at most five. */
  readonly leftAlone?: readonly ObjectProblem[];
  readonly drift?: Drift;
  /** A suspend kept from the cluster what it lacks. */
  readonly withheld?: "Suspended";
  /** Number of the newest `prune` that was carried out, as far as it could be. */
  readonly handledPrune?: number;
  /** The `reconcile` of the row when the cluster was looked at: that one is not due any more. */
  readonly handledReconcile?: number;
  /** True while such a look neither compared nor put back anything: the next one that can does as it was asked. */
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
  /** The same for the same (installation, namespace, name, cluster), so that a lost table finds its objects again. */
  readonly uid: string;
  readonly owner: Owner;
  /** Of the object that assigned last: what another one of its name left is not its own. */
  readonly ownerUid: string;
  readonly desired: Desired;
  readonly observed?: Observed;
  /** It lost its slot before it was done: looked at, and not written to until the planner assigns anew. The planner's. */
  readonly paused?: Paused;
  /** Number of the newest `reconcile` of the subject that the planner passed on. */
  readonly reconcile?: number;
  /** What people asked of this Sync on this cluster; written by `api`. */
  readonly operations?: { readonly prune?: PruneAct };
  /**
   * Who said last that it goes on from what its cluster remembers of other rows, and what that was. Written by `api`, and after
   * a `recover --all` by the planner.
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

/** Why the newest assignment is parked, and since when. */
export interface Paused {
  readonly reason: string;
  readonly at: string;
  /** Name of the one that took its turn: it waits for another. Absent: it has failed. */
  readonly freeze?: string;
}

/** Written by the worker that finds the lease of one that died at this Sync. */
export interface Deaths {
  /** What was wanted of the Sync; see `desiredKey`. */
  readonly desired: string;
  /** When the last was found. */
  readonly at: string;
  /** How many died in a row that had begun nothing else: others may have died of something else. */
  readonly alone: number;
}

/** A Sync at which a worker died is not worked at together with others for so long. */
const suspectSeconds = 86_400;

/** What a death at a Sync was about: another rendering starts without it, another attempt at the same does not. */
export function desiredKey({ desired }: Pick<SyncRow, "desired">): string {
  return desired.renderDigest ?? desired.action;
}

/** Those that count for what is wanted now. */
export function deathsAt(row: Pick<SyncRow, "desired" | "deaths">, now: Date): Deaths | undefined {
  const { deaths } = row;
  if (deaths?.desired !== desiredKey(row) || later(deaths.at, suspectSeconds) <= now.toISOString()) return undefined;
  return deaths;
}

/** Written by the worker: a freeze kept it from writing what the cluster lacks. */
export interface Held extends Pick<Freeze, "name" | "by" | "reason" | "until"> {
  /** The attempt this is about. */
  readonly attempt: number;
  readonly since: string;
  /** When the worker found it so last. */
  readonly at: string;
}

/** What holds the newest assignment, as far as the worker knows. */
export function holdOf({ held, desired }: Pick<SyncRow, "held" | "desired">): Held | undefined {
  return held?.attempt === desired.attempt && desired.action !== "orphan" ? held : undefined;
}

/**
 * The assignment by which a Sync is forgotten and its objects stay: no worker carries it out. The row that holds it is
 * kept, because attempts must never repeat: the cluster remembers the highest, and refuses a lower one.
 */
export function orphaning(before: Desired, at: { readonly rollout: number; readonly assignedAt: string }): Assigned {
  const { revision, apply, attempt } = before;
  return { action: "orphan", attempt: attempt + 1, revision, apply, ...at };
}

/**
 * True when what was observed is about another cluster than the one it is to be, or nobody knows about which: what is
 * recorded there is no ground for anything on this one.
 */
export function isOfAnother(row: Pick<SyncRow, "observed">, clusterUid: string | undefined): boolean {
  const { observed } = row;
  if (observed === undefined) return false;
  if (observed.clusterUid !== undefined) return observed.clusterUid !== clusterUid;
  return observed.inventory !== undefined || observed.applied !== undefined;
}

/**
 * Digests of the renderings that a row refers to: what is wanted, or was before it was to be deleted; what the cluster
 * holds; and what may have left objects there.
 */
export function renderingsNamed({ desired, observed, recovered }: NamingRow): ReadonlySet<string> {
  const { applied, remembered } = observed ?? {};
  const accepted = applied === undefined ? recovered?.remembered.renderDigest : undefined;
  const one = [desired.renderDigest, desired.instead?.renderDigest, applied?.renderDigest, remembered?.renderDigest];
  // What was left of those before is recorded, or among what is unsettled.
  const tried = applied?.attempt === desired.attempt ? [] : (desired.tried ?? []);
  const all = [...one, accepted, ...tried, ...(applied?.unsettled ?? [])];
  return new Set(all.filter((digest) => digest !== undefined));
}

type NamingRow = Pick<SyncRow, "desired" | "observed" | "recovered">;

/** True while the worker has not yet finished what the newest assignment asks. */
export function isOutstanding(row: Pick<SyncRow, "desired" | "observed">): boolean {
  if (row.desired.action === "orphan") return false;
  return row.observed?.attempt !== row.desired.attempt || !isSettled(row.observed.phase);
}

/** True while the store denies the worker what it needs; nothing is known of the cluster then. */
export function isDenied(observed: Observed | undefined): boolean {
  return observed?.phase === "Retrying" && observed.reason === "BlobDenied";
}

function isSettled(phase: Phase): boolean {
  return phase === "Ready" || phase === "Failed" || phase === "Gone";
}

/**
 * True while the newest assignment waits for its turn, because the cluster did not answer. What was observed about an
 * earlier one says nothing: a cluster that did not answer then may answer now.
 */
export function isAway({ desired, observed }: Pick<SyncRow, "desired" | "observed">): boolean {
  if (observed?.attempt !== desired.attempt) return false;
  return observed.phase === "Unreachable" || observed.phase === "Reachable";
}

/** True while somebody has asked for a look that was not had yet. */
export function isAsked({ reconcile, observed }: Pick<SyncRow, "observed" | "reconcile">): boolean {
  return reconcile !== undefined && reconcile !== observed?.handledReconcile;
}

/** False until what somebody asked for was done: everything compared, and put back whatever was undone before. */
export function isReconciled(row: Pick<SyncRow, "observed" | "reconcile">): boolean {
  return !isAsked(row) && row.observed?.owesReconcile === undefined;
}

/** True when foreign members are to be pruned, and the Sync is far enough for it: what git has is in the cluster. */
export function isPruneAsked({ desired, observed, operations }: Pick<SyncRow, "desired" | "observed" | "operations">) {
  const asked = operations?.prune?.number;
  if (asked === undefined || asked === observed?.handledPrune) return false;
  return desired.action === "delete" || observed?.applied?.attempt === desired.attempt;
}

/**
 * Whether it is time to look for drift while the objects are not ready: of those that are, others may change, and one
 * object may never be ready.
 */
export function isInspectionDue(row: Pick<SyncRow, "desired" | "observed" | "uid" | "reconcile">, now: Date): boolean {
  const { desired, observed } = row;
  if (observed === undefined || desired.apply.drift === "off") return false;
  if (!isReconciled(row)) return true;
  const last = observed.inspectedAt ?? observed.applied?.at;
  return last !== undefined && later(last, jittered(intervalOf(desired), `${row.uid}${last}`)) <= now.toISOString();
}

/** Seconds between two looks at what is settled. */
export function intervalOf({ apply }: Pick<Desired, "apply">): number {
  return secondsOf(apply.interval);
}
