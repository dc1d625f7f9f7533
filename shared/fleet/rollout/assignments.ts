import { defined } from "#shared/base/defined.ts";
import { isFresh } from "#shared/fleet/blob-life.ts";
import { secondsOf } from "#shared/fleet/kinds/quantities.ts";
import { overridden } from "#shared/fleet/rollout/cluster-inputs.ts";
import type { Relation } from "#shared/fleet/rollout/desired-plan.ts";
import type { ClusterRows } from "#shared/fleet/rollout/facts.ts";
import { isNewestAssignment, isUnchanged } from "#shared/fleet/rollout/judge.ts";
import { hashOf, later } from "#shared/fleet/rows/due.ts";
import { type Owner, syncName } from "#shared/fleet/rows/keys.ts";
import type { PinnedSource, RenderingRow, RolloutRow, SlotRow, TargetInput } from "#shared/fleet/rows/rollout-rows.ts";
import { because } from "#shared/fleet/rows/stated-reason.ts";
import { type Assigned, isOutstanding, type SyncRow } from "#shared/fleet/rows/sync-row.ts";

export interface Assignment {
  readonly cluster: string;
  readonly name: string;
  readonly desired: Assigned;
}

export interface RenderingRequest
  extends Pick<RenderingRow, "input" | "artifactDigest" | "path" | "render" | "specialise"> {
  /** Name of the Source that has the artifact, and its revision. */
  readonly source: string;
  readonly revision: string;
  /** Sources that values files come from. */
  readonly besides: readonly PinnedSource[];
}

/** By digest of a rendering, the objects that were left out of it, with the reasons. */
export type LeftOut = ReadonlyMap<string, readonly string[]>;

export type Rendered =
  /** A template that the cluster does not get has none. */
  | { readonly kind: "ready"; readonly digests: readonly (string | undefined)[]; readonly leftOut?: LeftOut }
  /**
   * Inputs whose rendering this owner has not requested, or is old: the owner would not be informed, or the rendering
   * could be lost.
   */
  | { readonly kind: "pending"; readonly unasked: readonly number[] }
  | { readonly kind: "failed"; readonly reason: string };

const renderFailed = "RenderFailed";

export interface RenderingClock {
  readonly owner: Owner;
  readonly now: Date;
  readonly progressSeconds: number;
  /** A failed rendering is requested once more, however final it was: a newer version of Starling may render it. */
  readonly retriedAt?: string | undefined;
  /** Renderings that the cluster has been assigned: its worker keeps them stored. */
  readonly assigned?: ReadonlySet<string>;
}

/**
 * The progress of a target's renderings. A renderer that began and has not finished in time has failed. A rendering
 * that was made long ago may be lost soon: it is requested once more before a cluster gets it.
 */
export function targetRenderings(
  inputs: readonly TargetInput[],
  renderings: ReadonlyMap<string, RenderingRow>,
  clock: RenderingClock,
): Rendered {
  const digests: (string | undefined)[] = [];
  const leftOut = new Map<string, readonly string[]>();
  const unasked: number[] = [];
  let isPending = false;
  for (const [index, input] of inputs.entries()) {
    if ("problem" in input) return { kind: "failed", reason: because(renderFailed, input.problem) };
    if ("disabled" in input) {
      digests.push(undefined);
      continue;
    }
    const row = renderings.get(input.digest);
    if (row?.state === "Failed" && row.requestedAt >= (clock.retriedAt ?? ""))
      return { kind: "failed", reason: because(renderFailed, row.failure?.message ?? "no reason given") };
    if (row?.state === "Done" && row.digest !== undefined) {
      digests.push(row.digest);
      if (row.leftOut !== undefined) leftOut.set(row.digest, row.leftOut);
      if (clock.assigned?.has(row.digest) === true || isFresh(row.keptAt ?? row.doneAt, clock.now)) continue;
      isPending = true;
      unasked.push(index);
      continue;
    }
    if (row?.begunAt !== undefined && later(row.begunAt, clock.progressSeconds) <= clock.now.toISOString())
      return { kind: "failed", reason: lateReason(row) };
    isPending = true;
    if (row?.state !== "Pending" || !waitsFor(row, clock.owner)) unasked.push(index);
  }
  return isPending
    ? { kind: "pending", unasked }
    : { kind: "ready", digests, ...(leftOut.size === 0 ? {} : { leftOut }) };
}

function lateReason({ begunAt, failure }: RenderingRow): string {
  return because(renderFailed, `not rendered since ${begunAt}${failure === undefined ? "" : `: ${failure.message}`}`);
}

/** Whether the reason of a failure is a missing rendering. */
export function isRenderFailure(reason?: string): boolean {
  return reason?.startsWith(because(renderFailed, "")) === true;
}

function waitsFor({ waiting = [] }: RenderingRow, { namespace, kind, name }: Owner): boolean {
  return waiting.some((one) => one.namespace === namespace && one.kind === kind && one.name === name);
}

export interface Assigning {
  readonly owner: Owner;
  readonly cluster: string;
  readonly rollout: RolloutRow;
  /**
   * Templates that the spec desires now: no rollout deletes them, however old it is. Undefined when the owner itself is
   * being deleted.
   */
  readonly relation: Pick<Relation, "templates" | "rollout"> | undefined;
  /** By template of the rollout, in its order. */
  readonly inputs: readonly TargetInput[];
  readonly digests: readonly (string | undefined)[];
  readonly leftOut?: LeftOut | undefined;
  /** Every Sync of the owner on the cluster. */
  readonly syncs: readonly SyncRow[];
  readonly preexisting?: true | undefined;
  /** The bounds of the objects that it may prune. */
  readonly guard?: Pick<Assigned, "objectBounds" | "mayPrune">;
  readonly now: Date;
  /** No worker begins at or after this time. */
  readonly beginBefore?: string | undefined;
}

/** The assignments that take a cluster to a rollout; none when the cluster has it already. */
export function assignmentsFor(assigning: Assigning): readonly Assignment[] {
  const { owner, cluster, rollout, relation, inputs, digests, syncs, preexisting, now, beginBefore } = assigning;
  const previous = (name: string) => syncs.find((sync) => sync.name === name);
  const common = (name: string) => ({
    attempt: (previous(name)?.desired.attempt ?? 0) + 1,
    rollout: rollout.number,
    assignedAt: now.toISOString(),
    ...assigning.guard,
    ...defined({ preexisting, beginBefore }),
    ...startOf(assigning, rollout.rollback === undefined ? (relation?.rollout.jitter ?? "0s") : "0s"),
  });
  const assignments: Assignment[] = [];
  for (const [index, template] of rollout.plan.templates.entries()) {
    const name = syncName(owner, template.name);
    const [renderDigest, input] = [digests[index], inputs[index]];
    if (input !== undefined && "disabled" in input) continue;
    if (renderDigest === undefined || input === undefined || "problem" in input)
      throw new Error("a target was taken for rendered and is not");
    const { revision, apply, source } = overridden(template, input.overrides);
    if (isUnchanged(previous(name), { renderDigest, apply })) continue;
    const made = { input: input.digest, source, ...reportOf(assigning.leftOut?.get(renderDigest)) };
    assignments.push({
      cluster,
      name,
      desired: { action: "apply", revision, renderDigest, ...made, apply, ...common(name) },
    });
  }
  const asked = new Set(rollout.deletes?.map((template) => syncName(owner, template)));
  for (const row of removalsOf(assigning)) {
    const { revision, apply } = row.desired;
    const why = asked.has(row.name) ? { asked: true as const } : { instead: insteadOf(row) };
    const desired: Assigned = { action: "delete", revision, apply, ...why, ...common(row.name) };
    assignments.push({ cluster, name: row.name, desired });
  }
  return assignments;
}

/** Length limit for texts of an assignment: each cluster has its own copy. */
const mostReported = 5;

function reportOf(texts: readonly string[] | undefined): Pick<Assigned, "leftOut"> {
  if (texts === undefined) return {};
  const more = texts.length - mostReported;
  return { leftOut: more > 0 ? [...texts.slice(0, mostReported), `and ${more} more`] : texts };
}

/** Syncs of templates that the cluster no longer gets. */
export function leavingOf({ owner, rollout, inputs, syncs }: Assigning): readonly SyncRow[] {
  const disabled = rollout.plan.templates.filter((_, index) => {
    const input = inputs[index];
    return input !== undefined && "disabled" in input;
  });
  const names = new Set(disabled.map(({ name }) => syncName(owner, name)));
  return syncs.filter(({ name, desired }) => names.has(name) && desired.action !== "orphan");
}

/**
 * The cluster's Syncs without those of the rollout, and without those that the spec desires now and that people do not
 * want to be deleted.
 */
function removalsOf({ owner, rollout, relation, syncs }: Assigning): readonly SyncRow[] {
  const desired = relation?.templates.filter(({ name }) => rollout.deletes?.includes(name) !== true) ?? [];
  const templates = [...rollout.plan.templates, ...desired];
  const kept = new Set(templates.map(({ name }) => syncName(owner, name)));
  return syncs.filter(({ name, desired }) => !kept.has(name) && desired.action !== "orphan");
}

function insteadOf({ desired }: SyncRow): NonNullable<Assigned["instead"]> {
  const { action, instead, revision, renderDigest, input, source, rollout } = desired;
  if (action !== "apply" && instead !== undefined) return instead;
  return { revision, rollout, ...defined({ renderDigest, input, source }) };
}

/**
 * Spreads starts over the group's `jitter`, and over half of the time at most in which they may begin; a cluster always
 * has the same moment.
 */
function startOf(
  { cluster, now, beginBefore }: Pick<Assigning, "cluster" | "now" | "beginBefore">,
  jitter: string,
): Pick<Assigned, "startAt"> {
  const left = beginBefore === undefined ? Number.POSITIVE_INFINITY : Date.parse(beginBefore) - now.getTime();
  const seconds = Math.min(secondsOf(jitter), Math.floor(left / 2000));
  return seconds === 0 ? {} : { startAt: later(now, (hashOf(cluster) % seconds) + 1) };
}

/** The assignment that replaces a withdrawn deletion: the one before it. */
export function takenBack(row: SyncRow, now: Date): Assigned | undefined {
  const { instead, attempt, apply, objectBounds, mayPrune } = row.desired;
  if (row.desired.action !== "delete" || instead?.renderDigest === undefined) return undefined;
  const guard = defined({ objectBounds, mayPrune });
  return { action: "apply", ...instead, attempt: attempt + 1, apply, assignedAt: now.toISOString(), ...guard };
}

/** True when the cluster was assigned everything of a rollout, and nothing else. */
export function isGiven(assigning: Assigning): boolean {
  const { owner, rollout, inputs, digests, syncs } = assigning;
  if (leavingOf(assigning).length > 0) return false;
  if (removalsOf(assigning).some(({ desired }) => desired.action !== "delete")) return false;
  return rollout.plan.templates.every((template, index) => {
    const input = inputs[index];
    if (input !== undefined && "disabled" in input) return true;
    const { name, apply } = overridden(template, input !== undefined && "digest" in input ? input.overrides : []);
    const sync = syncs.find((one) => one.name === syncName(owner, name));
    const renderDigest = digests[index];
    return sync !== undefined && renderDigest !== undefined && isNewestAssignment(sync, { renderDigest, apply });
  });
}

/**
 * `deselected`: it is the same cluster. `gone`: the next cluster of its name may be another one, and nothing is known
 * of it.
 */
export type ForgetReason = "deselected" | "gone";

/** Syncs with something to forget. */
export function toForget(syncs: readonly SyncRow[], as: ForgetReason): readonly SyncRow[] {
  return syncs.filter(({ desired, observed }) => {
    return desired.action !== "orphan" || (as === "gone" && observed !== undefined);
  });
}

/**
 * Most assignments of one cluster in one step, and of one slot; the others follow when these are done. They always fit into
 * a transaction with their other rows: twelve stages leave room for 74 rows. Up to 20 rows are templates that the cluster
 * gets or loses, up to 50 are removals or paused attempts of its slot, and 4 are its slot and similar rows.
 */
export const mostAssignments = 50;

/** Why an attempt is paused that its slot has no room for. */
export const followsText = "it follows when the rest of its slot is done";

/** The assignments of one step for a cluster, and what its slot is for afterwards. */
export interface Portion {
  readonly written: readonly Assignment[];
  /** The slot's attempts that continue as they are, by name. */
  readonly goingOn: SlotRow["attempts"];
  /**
   * Attempts of the slot that are paused, because a slot names at most `mostAssignments`. The next turn assigns them
   * again.
   */
  readonly paused: readonly SyncRow[];
  /** This step does not assign everything. */
  readonly isPart: boolean;
}

/**
 * Limits the attempts of a slot. Without the limit, each renaming of all templates adds some to the slot of a cluster
 * whose worker does not begin, until no transaction can hold the slot. Templates that the rollout applies come first;
 * then deletions that the slot names already.
 */
export function portionOf(
  { slot, syncs }: Pick<ClusterRows, "slot" | "syncs">,
  { assignments, leaving }: { readonly assignments: readonly Assignment[]; readonly leaving: readonly SyncRow[] },
): Portion {
  const isOpen = (sync: SyncRow) => slot?.attempts[sync.name] === sync.desired.attempt && isOutstanding(sync);
  const left = new Set(leaving.map(({ name }) => name));
  const open = syncs.filter((sync) => isOpen(sync) && !left.has(sync.name));
  const openNames = new Set(open.map(({ name }) => name));
  const rankOf = ({ name, desired }: Assignment) => (desired.action === "apply" ? 0 : openNames.has(name) ? 1 : 2);
  const written = assignments.toSorted((a, b) => rankOf(a) - rankOf(b)).slice(0, mostAssignments);
  const given = new Set(written.map(({ name }) => name));
  const others = open.filter(({ name }) => !given.has(name));
  const kept = others.slice(0, mostAssignments - written.length);
  const paused = others.slice(kept.length);
  return {
    written,
    goingOn: Object.fromEntries(kept.map(({ name, desired }) => [name, desired.attempt])),
    paused,
    isPart: written.length < assignments.length || paused.length > 0,
  };
}
