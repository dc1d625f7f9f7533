/** What a cluster is given, so that it comes to a content: pure, from its Syncs and what was rendered for it. */

import { defined } from "#shared/base/defined.ts";
import { isFresh } from "#shared/fleet/blob-life.ts";
import { secondsOf } from "#shared/fleet/kinds/quantities.ts";
import type { Relation } from "#shared/fleet/rollout/desired-plan.ts";
import { isNewestAssignment, isUnchanged } from "#shared/fleet/rollout/judge.ts";
import { overridden } from "#shared/fleet/rollout/override.ts";
import { hashOf, later } from "#shared/fleet/rows/due.ts";
import { type Owner, syncName } from "#shared/fleet/rows/keys.ts";
import type { PinnedSource, RenderingRow, RolloutRow, TargetInput } from "#shared/fleet/rows/rollout-rows.ts";
import { because } from "#shared/fleet/rows/stated-reason.ts";
import type { Assigned, SyncRow } from "#shared/fleet/rows/sync-row.ts";

export interface Assignment {
  readonly cluster: string;
  readonly name: string;
  readonly desired: Assigned;
}

export interface RenderingRequest
  extends Pick<RenderingRow, "input" | "artifactDigest" | "path" | "render" | "specialise"> {
  /** Name of the Source that has the artifact, and as of what. */
  readonly source: string;
  readonly revision: string;
  /** Those that files of values are from. */
  readonly besides: readonly PinnedSource[];
}

/** By digest of a rendering, what was left out of it, in words. */
export type LeftOut = ReadonlyMap<string, readonly string[]>;

export type Rendered =
  /** Of a template that the cluster is not given there is none. */
  | { readonly kind: "ready"; readonly digests: readonly (string | undefined)[]; readonly leftOut?: LeftOut }
  /** Of the inputs, those whose rendering this subject has not asked for, or is old: it would not be told, or had. */
  | { readonly kind: "pending"; readonly unasked: readonly number[] }
  | { readonly kind: "failed"; readonly reason: string };

const renderFailed = "RenderFailed";

export interface RenderingClock {
  readonly owner: Owner;
  readonly now: Date;
  readonly progressSeconds: number;
  /**
   * What failed before is asked for once more, however final it was: the Starling that is there since may render what the
   * one before it could not.
   */
  readonly retriedAt?: string | undefined;
}

/**
 * How far the renderings of a target are: a renderer that began, and is not through in time, has failed. What was done long
 * ago may be gone, or go soon: it is asked for once more before anybody is given it.
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
      if (isFresh(row.keptAt ?? row.doneAt, clock.now)) continue;
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

/** Of a reason for which somebody failed: that it was for want of a rendering. */
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
  /** What the spec wants now: that is deleted by no content, however old. Undefined when the subject itself goes. */
  readonly relation: Pick<Relation, "templates" | "rollout"> | undefined;
  /** By template of the content, in its order. */
  readonly inputs: readonly TargetInput[];
  readonly digests: readonly (string | undefined)[];
  readonly leftOut?: LeftOut | undefined;
  /** Every Sync of the subject on the cluster. */
  readonly syncs: readonly SyncRow[];
  readonly preexisting?: true | undefined;
  readonly now: Date;
}

/** The assignments that take a cluster to a content; none when it is there already. */
export function assignmentsFor(assigning: Assigning): readonly Assignment[] {
  const { owner, cluster, rollout, relation, inputs, digests, syncs, preexisting, now } = assigning;
  const previous = (name: string) => syncs.find((sync) => sync.name === name);
  const common = (name: string) => ({
    attempt: (previous(name)?.desired.attempt ?? 0) + 1,
    rollout: rollout.number,
    assignedAt: now.toISOString(),
    ...defined({ preexisting }),
    ...startOf(assigning, relation?.rollout.jitter ?? "0s"),
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
  for (const row of removalsOf(assigning)) {
    const { revision, apply } = row.desired;
    const desired: Assigned = { action: "delete", revision, apply, instead: insteadOf(row), ...common(row.name) };
    assignments.push({ cluster, name: row.name, desired });
  }
  return assignments;
}

/** Of what an assignment tells: each cluster has its own copy of it. */
const mostReported = 5;

function reportOf(texts: readonly string[] | undefined): Pick<Assigned, "leftOut"> {
  if (texts === undefined) return {};
  const more = texts.length - mostReported;
  return { leftOut: more > 0 ? [...texts.slice(0, mostReported), `and ${more} more`] : texts };
}

/** What the cluster has of templates that it is not given any more. */
export function leavingOf({ owner, rollout, inputs, syncs }: Assigning): readonly SyncRow[] {
  const disabled = rollout.plan.templates.filter((_, index) => {
    const input = inputs[index];
    return input !== undefined && "disabled" in input;
  });
  const names = new Set(disabled.map(({ name }) => syncName(owner, name)));
  return syncs.filter(({ name, desired }) => names.has(name) && desired.action !== "orphan");
}

/** Its Syncs, less the content's, less what the spec wants now. */
function removalsOf({ owner, rollout, relation, syncs }: Assigning): readonly SyncRow[] {
  const templates = [...rollout.plan.templates, ...(relation?.templates ?? [])];
  const kept = new Set(templates.map(({ name }) => syncName(owner, name)));
  return syncs.filter(({ name, desired }) => !kept.has(name) && desired.action !== "orphan");
}

function insteadOf({ desired }: SyncRow): NonNullable<Assigned["instead"]> {
  const { action, instead, revision, renderDigest, input, source, rollout } = desired;
  if (action !== "apply" && instead !== undefined) return instead;
  return { revision, rollout, ...defined({ renderDigest, input, source }) };
}

/** Spread over the time that the group gives to starts; the same cluster always at the same moment of it. */
function startOf({ cluster, now }: Pick<Assigning, "cluster" | "now">, jitter: string): Pick<Assigned, "startAt"> {
  const seconds = secondsOf(jitter);
  return seconds === 0 ? {} : { startAt: later(now, (hashOf(cluster) % seconds) + 1) };
}

/** What a deletion that is no longer wanted gives way to: what was there before. */
export function takenBack(row: SyncRow, now: Date): Assigned | undefined {
  const { instead, attempt, apply } = row.desired;
  if (row.desired.action !== "delete" || instead?.renderDigest === undefined) return undefined;
  return { action: "apply", ...instead, attempt: attempt + 1, apply, assignedAt: now.toISOString() };
}

/** True when everything of a content was given to the cluster already, and nothing that it has not. */
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
