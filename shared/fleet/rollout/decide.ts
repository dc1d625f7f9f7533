/** Decides about one cluster whose turn may have come. Pure. */

import { defined } from "#shared/base/defined.ts";
import { selects } from "#shared/fleet/kinds/cluster-selection.ts";
import { secondsOf } from "#shared/fleet/kinds/quantities.ts";
import {
  type Assigning,
  type Assignment,
  assignmentsFor,
  isGiven,
  leavingOf,
  mostAssignments,
  portionOf,
  type RenderingRequest,
  targetRenderings,
  toForget,
} from "#shared/fleet/rollout/assignments.ts";
import { buildOf } from "#shared/fleet/rollout/cluster-inputs.ts";
import { relationOf, stageOf } from "#shared/fleet/rollout/desired-plan.ts";
import { artifactRevisionOf } from "#shared/fleet/rollout/earlier-artifacts.ts";
import type { ClusterRows, Deciding, Known } from "#shared/fleet/rollout/facts.ts";
import { skipOf, skippedText } from "#shared/fleet/rollout/gate-acts.ts";
import { objectBounds } from "#shared/fleet/rollout/guarded-objects.ts";
import { beginBefore, type CatchUpWait, thawHold } from "#shared/fleet/rollout/holding.ts";
import { isPreexisting, isReplaceable } from "#shared/fleet/rollout/judge.ts";
import { keepsNewer, newestOf, standsFor } from "#shared/fleet/rollout/order.ts";
import { stageRunKey } from "#shared/fleet/rollout/stage-runs.ts";
import type {
  Hold,
  RenderingRow,
  RolloutRow,
  SlotRow,
  SnapshotTarget,
  StageRunRow,
} from "#shared/fleet/rows/rollout-rows.ts";
import { because } from "#shared/fleet/rows/stated-reason.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { valueArtifacts } from "#shared/source/helm/helm-release.ts";

/** A cluster whose turn may be next. */
export interface Candidate {
  readonly target: SnapshotTarget;
  readonly rows: ClusterRows;
  readonly rollout: RolloutRow;
  readonly stage: string;
  /** The stage run that it is a target of; absent for a catch-up. */
  readonly stageRun?: StageRunRow;
  readonly order?: number;
  /** Inputs that could not be rendered before are tried once more. */
  readonly retriedAt?: string | undefined;
  /** Names of the Syncs that it gets of the rollout; when absent, all. */
  readonly only?: ReadonlySet<string> | undefined;
}

/** By input. */
export interface Renderings {
  readonly rows: ReadonlyMap<string, RenderingRow>;
  /** Why renderings that only a newer version can read are missing. */
  readonly newer: ReadonlyMap<string, string>;
}

export type Step =
  | { readonly do: "skip" | "takeOut" | "unchanged" | "away" | "fail"; readonly reason: string }
  /** It is held back; the requests are for renderings that nobody has requested for it yet. */
  | (Pick<Hold, "cause" | "name"> & { readonly do: "hold"; readonly requests: readonly RenderingRequest[] })
  /** Its attempt is for this very rollout: it is counted from now on. */
  | { readonly do: "adopt"; readonly slot: SlotRow }
  | {
      readonly do: "assign";
      readonly assignments: readonly Assignment[];
      /** Its Syncs of templates that it no longer gets. */
      readonly leaving: readonly SyncRow[];
    }
  /** It only has to keep the objects of these templates. */
  | { readonly do: "leave"; readonly leaving: readonly SyncRow[]; readonly reason: string }
  | { readonly do: "forget"; readonly syncs: readonly SyncRow[]; readonly reason: string };

/** The worker of an earlier attempt may still write there, or the cluster's row is newer than the list of members. */
export const heldByWorker = { do: "hold", cause: "worker", requests: [] } as const;

export function digestsOf({ inputs }: SnapshotTarget): readonly string[] {
  return inputs.flatMap((input) => ("digest" in input ? [input.digest] : []));
}

/** Decides about a cluster whose turn may have come. */
export function decide(
  candidate: Candidate,
  renderings: Renderings,
  { known, now }: Pick<Deciding, "known" | "now">,
): Step {
  const { target, rows, rollout, stage, stageRun } = candidate;
  const { fleet, slot, syncs } = rows;
  const { owner, row, rolloutState } = known;
  const unread = rows.newer ?? digestsOf(target).flatMap((input) => renderings.newer.get(input) ?? [])[0];
  if (unread !== undefined) return { do: "away", reason: because("NewerRow", unread) };
  const isOwnerDeletion = rollout.plan.deletion !== undefined;
  if (fleet === undefined && isOwnerDeletion) {
    const forgotten = toForget(syncs, "gone").slice(0, mostAssignments);
    return { do: "forget", syncs: forgotten, reason: "no longer registered; its objects stay" };
  }
  const strayed = isOwnerDeletion ? undefined : strayedText(candidate, known);
  if (strayed !== undefined) return { do: "skip", reason: strayed };
  const has = newestOf(syncs);
  if (stageRun !== undefined && !isOwnerDeletion && keepsNewer(rolloutState, { has, stage, rollout: rollout.number }))
    return { do: "unchanged", reason: `keeps rollout ${has}, which another stage has passed` };
  const takenOut = takenOutOf(candidate, known);
  // Its last attempt was given up, and its worker may still be writing.
  if (slot?.releasing !== undefined) return takenOut ?? heldByWorker;
  const { rollout: settings } = relationOf(row);
  const rendered = targetRenderings(target.inputs, renderings.rows, {
    owner,
    now,
    progressSeconds: secondsOf(settings.progressDeadline),
    retriedAt: candidate.retriedAt,
    assigned: new Set(syncs.flatMap(({ desired }) => desired.renderDigest ?? [])),
  });
  if (rendered.kind !== "ready" && takenOut !== undefined) return takenOut;
  if (rendered.kind === "failed") return { do: "fail", reason: rendered.reason };
  if (rendered.kind === "pending")
    return {
      do: "hold",
      cause: "rendering",
      requests: rendered.unasked.flatMap((index) => requestOf({ rollout, target }, index)),
    };
  const isRollback = rollout.rollback !== undefined;
  const thawing = { ...known, rollback: rollout.rollback };
  const { current } = rolloutState.stages.find(({ name }) => name === stage) ?? {};
  const assigning: Assigning = {
    owner,
    cluster: target.cluster,
    rollout,
    relation: row.operations.deletion === undefined ? relationOf(row) : undefined,
    inputs: target.inputs,
    digests: rendered.digests,
    leftOut: rendered.leftOut,
    syncs,
    preexisting:
      syncs.some((sync) => isPreexisting(sync, unhealthySince(sync, { rollout, current, known }))) || undefined,
    // A rollback is not withheld.
    guard: isRollback ? {} : objectBounds(known.guarded, rolloutState, { rollout: rollout.number, now }),
    now,
    beginBefore: fleet && beginBefore(thawing, fleet, now),
  };
  const held = fleet && thawHold(thawing, fleet, now);
  const waits: Step = held === undefined ? heldByWorker : { do: "hold", ...held, requests: [] };
  const assignments = assignmentsFor(assigning).filter(({ name }) => candidate.only?.has(name) ?? true);
  // A cluster that gets back what it lost keeps whatever it has received since.
  const leaving = candidate.only === undefined ? leavingOf(assigning) : [];
  const isNothing = assignments.length === 0 && leaving.length === 0;
  // A target that nothing changes is no part of what the stage run changes, skipped or not.
  if (takenOut !== undefined && (slot !== undefined || !isNothing)) return takenOut;
  if (slot !== undefined) {
    const given = syncs.filter(({ name }) => name in slot.attempts);
    // Something that the slot is not for may have failed before.
    const isWhole = isGiven(assigning) && assignments.every(({ name }) => name in slot.attempts);
    // A rollback replaces an attempt in its slot at once: the worker reads that before its next write.
    const isBusy = !isWhole && !isRollback && !given.every(isReplaceable);
    // A slot that belongs to a stage run in progress stays with that stage run.
    if (stageRun === undefined || isCounted(slot, known) || isBusy) return waits;
    if (isWhole) return { do: "adopt", slot };
  }
  if (isNothing) return { do: "unchanged", reason: "already runs this rendering" };
  if (held !== undefined) return waits;
  if (assignments.length > 0) return { do: "assign", assignments, leaving };
  const names = leaving.map(({ name }) => name).join(", ");
  return { do: "leave", leaving, reason: `is not given ${names} any more; the objects stay` };
}

/**
 * The rollout since which an unhealthy Sync was so before this rollout; undefined without one. A cluster that a bad
 * rollout broke was well before, also when the rollout that took that back by itself failed there as well.
 */
function unhealthySince(
  { desired, observed }: SyncRow,
  {
    rollout: { rollback, takesBack },
    current,
    known,
  }: { readonly rollout: RolloutRow; readonly current: number | undefined; readonly known: Known },
): number | undefined {
  if (rollback !== undefined) return takesBack === undefined ? undefined : rollback;
  const wasReady = observed?.attempt === desired.attempt && observed.readyAt !== undefined;
  return current === undefined || wasReady ? current : standsFor(known.rolloutState, current);
}

/** A person skips the target of a stage run. */
function takenOutOf({ rows: { fleet }, stageRun, rollout }: Candidate, known: Known): Step | undefined {
  if (stageRun === undefined || fleet === undefined || rollout.plan.deletion !== undefined) return undefined;
  const skip = skipOf(known.row.operations, stageRun, { cluster: fleet, rolloutState: known.rolloutState });
  return skip && { do: "takeOut", reason: skippedText(skip) };
}

/** True when a stage run in progress counts the slot's target. */
function isCounted({ stageRun }: SlotRow, { stageRuns }: Known): boolean {
  return stageRun !== undefined && stageRuns.has(stageRunKey(stageRun));
}

/** Why a cluster is no longer a target of its stage. */
function strayedText({ rows: { fleet }, target, stage }: Candidate, { row }: Known): string | undefined {
  const relation = relationOf(row);
  if (fleet === undefined) return "no longer registered; its objects stay";
  if (fleet.uid !== target.uid) return "registered anew";
  if (!selects(relation.clusters, fleet)) return "no longer selected; its objects stay";
  const own = stageOf(relation.rollout, fleet);
  return own === stage ? undefined : `moved to stage ${own}`;
}

export function requestOf(
  { rollout, target }: Pick<Candidate, "rollout" | "target">,
  index: number,
): readonly RenderingRequest[] {
  const [template, input] = [rollout.plan.templates[index], target.inputs[index]];
  if (template === undefined || input === undefined || !("digest" in input)) return [];
  const { source } = template;
  const build = buildOf(template, input);
  const others = valueArtifacts(build.render?.helm);
  const besides = (template.besides ?? []).filter(({ artifactDigest }) => others.includes(artifactDigest));
  return [{ input: input.digest, source, revision: artifactRevisionOf(template), besides, ...build }];
}

/** Rows of Syncs that a step writes at once. */
export function assignedAtOnce(step: Step, rows: ClusterRows): number {
  if (step.do === "forget") return step.syncs.length;
  if (step.do === "leave") return step.leaving.length;
  if (step.do !== "assign") return 0;
  const { written, paused } = portionOf(rows, step);
  return written.length + paused.length + step.leaving.length;
}

/** @returns undefined when the step ends the wait. */
export function waitOf(step: Step): CatchUpWait | undefined {
  if (step.do === "hold")
    return step.requests.length > 0 ? "asked" : { cause: step.cause, ...defined({ name: step.name }) };
  return step.do === "away" ? "others" : undefined;
}
