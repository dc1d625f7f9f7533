/**
 * The planner's decision: from what is known to what is written, without I/O and without a clock of its own. It is
 * level-based: it looks at everything outstanding each time, so an observation may come twice, late or never.
 */
import { resolveCount } from "#shared/fleet/kinds/quantities.ts";
import type { Advance, Assignment, Observations, PlannerState } from "#shared/fleet/rollout/decision.ts";
import { deadlinesUnder, type Hold } from "#shared/fleet/rollout/holds.ts";
import { deadlineOf, isChanging, isPreexisting, isUnchanged, judge } from "#shared/fleet/rollout/judge.ts";
import { RolloutDraft } from "#shared/fleet/rollout/rollout-draft.ts";
import { type Freeze, freezeText } from "#shared/fleet/rows/brake-row.ts";
import { type Subject, syncName } from "#shared/fleet/rows/keys.ts";
import type { RenderingRow, RolloutRow, TargetInput, TargetRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { Assigned, SyncRow } from "#shared/fleet/rows/sync-row.ts";

/** Clusters a rollout names one by one in its row, which is written with every step: far below the row's 400 KB. */
const mostNamed = 1500;
const stalledReason = "TooManyUnreachable";
const frozenReason = "Frozen";

/**
 * One step of a rollout that is Running or Halted.
 * @param at.room - rows that fit into what is written at once (targets, assignments and removals).
 */
export function advance(
  state: PlannerState,
  observations: Observations,
  at: { readonly now: Date; readonly room: number },
): Advance {
  const draft = new RolloutDraft(state, at);
  const known = { ...observations, syncs: Map.groupBy(observations.syncs, (row) => row.cluster), ...at };
  draft.pause(state.suspended);
  if (!observe(draft, state, known)) return draft.result({ again: true });
  settleCarried(draft, known);
  if (state.suspended || draft.phase !== "Running") return draft.result({ again: false });
  if (state.freeze !== undefined && draft.unfinished() > 0) {
    tellFrozen(draft, state.freeze);
    return draft.result({ again: false });
  }

  if (overBudget(draft)) {
    const word = draft.failures() === 1 ? "cluster" : "clusters";
    draft.finish(
      "Halted",
      "TooManyFailures",
      `${draft.failures()} ${word} failed in stage ${draft.stage().name}: ${draft.worstFailure()}`,
    );
    return draft.result({ again: false });
  }
  const filled = fillSlots(draft, state, known);
  if (filled === "more" || overBudget(draft)) return draft.result({ again: true });
  if (draft.unfinished() > 0) {
    const away = draft.count("Unreachable");
    const freeze = freezeThatBlocks(draft, state, known);
    if (freeze !== undefined) {
      tellFrozen(draft, freeze);
    } else if (draft.changing() === 0 && draft.named() >= mostNamed) {
      draft.explain(
        stalledReason,
        `stage ${draft.stage().name} waits: ${away} unreachable, a rollout bears ${mostNamed}`,
      );
    } else if (draft.rollout.reason === stalledReason || draft.rollout.reason === frozenReason) {
      draft.explain("StageStarted", `stage ${draft.stage().name} goes on`);
    }
    return draft.result({ again: false });
  }
  const unreachable = draft.count("Unreachable");
  const allowed = resolveCount(state.rollout.strategy.maxUnreachable, state.rollout.selected);
  if (unreachable > allowed) {
    draft.explain(
      stalledReason,
      `stage ${draft.stage().name} waits: ${unreachable} unreachable, maxUnreachable allows ${allowed}`,
    );
    return draft.result({ again: false });
  }
  if (draft.completeStage()) return draft.result({ again: true });
  if (draft.carriedCount() > 0) return draft.result({ again: false });
  if (state.rollout.plan.farewell !== undefined && !isFarewellOver(draft)) return draft.result({ again: false });
  draft.finish("Complete", "AllStagesPassed", completeMessage(draft));
  return draft.result({ again: true });
}

/**
 * Nobody would see what is left of a subject that is gone: it goes when nothing is left of it in any cluster, whatever
 * its budgets bear in a rollout.
 */
function isFarewellOver(draft: RolloutDraft): boolean {
  const failed = draft.count("Failed");
  if (failed > 0) {
    const where = `${failed} ${failed === 1 ? "cluster" : "clusters"} failed: ${draft.worstFailure()}`;
    const remedy = "mend that and reconcile, or delete it with --cascade=orphan to leave its objects where they are";
    draft.finish("Halted", "DeletionFailed", `${where}; ${remedy}`);
    return false;
  }
  const away = draft.count("Unreachable");
  if (away > 0) draft.explain(stalledReason, `the deletion waits: ${away} unreachable`);
  return away === 0;
}

function tellFrozen(draft: RolloutDraft, freeze: Freeze): void {
  draft.explain(frozenReason, `stage ${draft.stage().name} waits: ${freezeText(freeze)}`);
}

/** Of the clusters that are looked at, those that change or could change next are all frozen: the first one's freeze. */
function freezeThatBlocks(draft: RolloutDraft, state: PlannerState, { holds }: Known): Freeze | undefined {
  if (holds === undefined || holds.size === 0) return undefined;
  const freezeOf = (target: TargetRow) => holds.get(target.cluster)?.freeze;
  const changing = state.targets.filter((target) => draft.isOutstanding(target));
  const waiting = draft.inTurn(state.targets);
  if (changing.some((target) => freezeOf(target) === undefined)) return undefined;
  const canGoOn = freeSlots(draft, state.rollout) > 0 && waiting.some((target) => freezeOf(target) === undefined);
  const [first] = [...changing, ...waiting].flatMap((target) => freezeOf(target) ?? []);
  return canGoOn || draft.carriedCount() > 0 ? undefined : first;
}

function overBudget(draft: RolloutDraft): boolean {
  return draft.failures() > resolveCount(draft.rollout.strategy.maxFailures, draft.rollout.selected);
}

function completeMessage(draft: RolloutDraft): string {
  const parts = (["Succeeded", "Unchanged", "Failed", "Unreachable", "Skipped"] as const)
    .filter((name) => draft.count(name) > 0)
    .map((name) => `${draft.count(name)} ${name.toLowerCase()}`);
  return parts.length === 0 ? "no cluster was selected" : parts.join(", ");
}

interface Known {
  readonly unreadable?: ReadonlyMap<string, string>;
  readonly syncs: ReadonlyMap<string, readonly SyncRow[]>;
  readonly renderings: ReadonlyMap<string, RenderingRow>;
  readonly selected: ReadonlyMap<string, boolean>;
  readonly holds?: ReadonlyMap<string, Hold>;
  readonly now: Date;
}

/**
 * Outstanding targets take the state their clusters show; parked ones that answer again or left wait for their next turn.
 * @returns whether there was room for all of it.
 */
function observe(draft: RolloutDraft, state: PlannerState, known: Known): boolean {
  for (const target of state.targets) {
    const syncs = known.syncs.get(target.cluster) ?? [];
    if (draft.room() < 1 + syncs.length) return false;
    const unread = known.unreadable?.get(target.cluster);
    if (unread !== undefined) {
      if (draft.isOutstanding(target)) draft.move(target, { state: "Unreachable", reason: `NewerRow: ${unread}` });
    } else if (draft.isOutstanding(target)) {
      const deadlines = deadlinesUnder(draft.rollout, known.holds?.get(target.cluster));
      const verdict = judge(target, syncs, { ...deadlines, now: known.now });
      draft.move(target, verdict);
      if (verdict.state === "Succeeded") draft.removeGone(target, syncs);
    } else if (draft.isParked(target)) {
      const own = syncs.filter((sync) => target.attempts[sync.name] !== undefined);
      if (known.selected.get(target.cluster) === false)
        draft.move(target, { state: "Waiting", reason: "no longer selected" });
      else if (own.every((sync) => sync.observed?.phase !== "Unreachable")) {
        draft.move(target, { state: "Waiting", reason: "answers again" });
      }
    }
  }
  return true;
}

/**
 * A cluster an earlier rollout left changing gives its slot back when it settles or its deadline is over; while the
 * subject is suspended, or the cluster frozen, no deadline runs, because the cluster's worker stands still and will go on.
 */
function settleCarried(draft: RolloutDraft, known: Known): void {
  const { pausedAt } = draft.rollout;
  draft.keepCarried((carried) => {
    const hold = known.holds?.get(carried.cluster);
    const isHeld = pausedAt !== undefined || hold?.freeze !== undefined;
    if (!isHeld && carriedUntil(carried, draft.rollout, hold) <= known.now.toISOString()) return false;
    return (known.syncs.get(carried.cluster) ?? []).some(isChanging);
  });
}

/** Where a freeze has let go of it, its deadline starts anew then. */
function carriedUntil(
  { until }: RolloutRow["carried"][number],
  { strategy }: Pick<RolloutRow, "strategy">,
  hold: Hold | undefined,
): string {
  if (hold?.releasedAt === undefined) return until;
  const anew = deadlineOf({ assignedAt: hold.releasedAt }, { strategy }) ?? until;
  return anew > until ? anew : until;
}

/**
 * Gives free slots to the next targets of the stage, in order. When there are none left, those that bring one along
 * have their turn all the same: they are changing already, and to what is no longer wanted.
 * @returns "more" when there may be further targets to give slots to than the state held.
 */
function fillSlots(draft: RolloutDraft, state: PlannerState, supplies: Known): "more" | "enough" {
  let slots = freeSlots(draft, state.rollout);
  let waitingRenderings = 0;
  let full = false;
  const names = namesOf(state.rollout);
  for (const target of draft.inTurn(state.targets)) {
    const current = draft.current(target);
    const freeze = supplies.holds?.get(current.cluster)?.freeze;
    const syncs = supplies.syncs.get(current.cluster) ?? [];
    if (draft.room() < 1 + syncs.length) return "more";
    const unread = supplies.unreadable?.get(current.cluster);
    if (unread !== undefined) {
      draft.move(target, { state: "Unreachable", reason: `NewerRow: ${unread}` });
      continue;
    }
    const selected = supplies.selected.get(current.cluster);
    if (current.leaving === true || selected === false) {
      draft.forget(current, names, syncs);
      continue;
    }
    // It has just given its slot back: whether it is still selected, and rendered, is for the next look.
    if (selected === undefined) return "more";
    const needsSlot = !draft.isCarried(current.cluster);
    if (needsSlot && full) continue;
    const rendered = renderingsOf(current, state.rollout, supplies.renderings);
    if (rendered.kind === "failed") {
      draft.move(target, { state: "Failed", reason: rendered.reason });
      if (overBudget(draft)) return "more";
      continue;
    }
    if (rendered.kind === "pending") {
      if (needsSlot && waitingRenderings >= Math.max(slots, 1)) {
        full = true;
        continue;
      }
      waitingRenderings++;
      draft.move(target, { state: "Rendering", reason: "waiting for its rendering" });
      for (const unasked of rendered.unasked) draft.request(unasked, current);
      continue;
    }
    const wanted = wantedBy(state.rollout, { target: current, syncs, digests: rendered.digests, now: supplies.now });
    if (wanted.length === 0) {
      draft.move(target, { state: "Unchanged", reason: "already runs this rendering" });
      continue;
    }
    if (draft.room() < 2 + wanted.length) return "more";
    if (wanted.every(({ desired }) => desired.action === "orphan")) {
      draft.settle(current, wanted);
      continue;
    }
    if (freeze !== undefined) {
      draft.hold(current, freeze);
      continue;
    }
    // A carried cluster brings its slot along, unless a stricter bound has taken it away.
    if (needsSlot ? slots <= 0 : slots < 0) {
      full = true;
      continue;
    }
    if (needsSlot) slots--;
    const preexisting = syncs.some((sync) => isPreexisting(sync, state.completed));
    draft.assign(draft.release(current), { assignments: wanted, preexisting });
  }
  const unseen = draft.count("Waiting") > 0 && freeSlots(draft, state.rollout) > 0;
  return unseen && draft.progressed() ? "more" : "enough";
}

function namesOf(rollout: RolloutRow): readonly string[] {
  return [...rollout.plan.templates.map((template) => template.name), ...rollout.plan.removed].map((name) =>
    syncName(rollout.subject, name),
  );
}

/** Free slots of the subject and of the stage, whichever are fewer. */
function freeSlots(draft: RolloutDraft, rollout: RolloutRow): number {
  const bound = Math.max(1, resolveCount(rollout.strategy.maxConcurrent, rollout.selected));
  const stage = draft.stage();
  const stageBound =
    stage.maxConcurrent === undefined ? bound : Math.max(1, resolveCount(stage.maxConcurrent, stage.size));
  return Math.min(Math.min(bound, stageBound) - draft.changing(), mostNamed - draft.named());
}

type Rendered =
  | { readonly kind: "ready"; readonly digests: readonly string[] }
  /** Of the inputs, those whose rendering this subject has not asked for: it would not be told. */
  | { readonly kind: "pending"; readonly unasked: readonly number[] }
  | { readonly kind: "failed"; readonly reason: string };

function renderingsOf(target: TargetRow, rollout: RolloutRow, renderings: ReadonlyMap<string, RenderingRow>): Rendered {
  const digests: string[] = [];
  const unasked: number[] = [];
  let pending = false;
  for (const [index, input] of target.inputs.entries()) {
    if ("problem" in input) return { kind: "failed", reason: `RenderFailed: ${input.problem}` };
    const row = renderings.get(input.digest);
    if (row?.state === "Failed" && !isAskedAgain(row, rollout))
      return { kind: "failed", reason: `RenderFailed: ${row.failure?.message ?? "no reason given"}` };
    if (row?.state === "Done" && row.digest !== undefined) {
      digests.push(row.digest);
      continue;
    }
    pending = true;
    if (row?.state !== "Pending" || !waitsFor(row, rollout.subject)) unasked.push(index);
  }
  return pending ? { kind: "pending", unasked } : { kind: "ready", digests };
}

/** A `reconcile` asks once more for what rests, and not for what the input itself is wrong about. */
function isAskedAgain({ restsUntil, requestedAt }: RenderingRow, { trigger, createdAt }: RolloutRow): boolean {
  return restsUntil !== undefined && trigger === "reconcile" && requestedAt < createdAt;
}

function waitsFor(row: RenderingRow, { namespace, kind, name }: Subject): boolean {
  const waiting = row.waiting ?? [];
  return waiting.some((one) => one.namespace === namespace && one.kind === kind && one.name === name);
}

interface Wanting {
  readonly target: TargetRow;
  readonly syncs: readonly SyncRow[];
  readonly digests: readonly string[];
  readonly now: Date;
}

/** The assignments that take a cluster to the plan; none when it is there already. */
function wantedBy(rollout: RolloutRow, wanting: Wanting): Assignment[] {
  const assignments: Assignment[] = [];
  const previous = (name: string) => wanting.syncs.find((sync) => sync.name === name);
  const common = (name: string) => ({
    attempt: (previous(name)?.desired.attempt ?? 0) + 1,
    rollout: rollout.number,
    assignedAt: wanting.now.toISOString(),
  });
  for (const [index, template] of rollout.plan.templates.entries()) {
    const name = syncName(rollout.subject, template.name);
    const renderDigest = wanting.digests[index];
    if (renderDigest === undefined) throw new Error("a target was taken for rendered and is not");
    if (isUnchanged(previous(name), { renderDigest, apply: template.apply })) continue;
    const desired: Assigned = {
      action: "apply",
      revision: template.revision,
      renderDigest,
      ...madeFrom(wanting.target.inputs[index], template.source),
      apply: template.apply,
      ...common(name),
    };
    assignments.push({ cluster: wanting.target.cluster, name, desired });
  }
  for (const template of rollout.plan.removed) {
    const name = syncName(rollout.subject, template);
    const row = previous(name);
    if (row === undefined || row.desired.action === "orphan") continue;
    const action = rollout.plan.farewell ?? "delete";
    const desired: Assigned = { action, revision: row.desired.revision, apply: row.desired.apply, ...common(name) };
    assignments.push({ cluster: wanting.target.cluster, name, desired });
  }
  return assignments;
}

function madeFrom(input: TargetInput | undefined, source: string): Pick<Assigned, "input" | "source"> {
  return input === undefined || "problem" in input ? {} : { input: input.digest, source };
}

/**
 * When the planner must look again although nobody calls it: the nearest deadline, or the end of a freeze. No deadline
 * runs while it is suspended, nor that of a frozen cluster.
 */
export function nextDeadline(
  rollout: RolloutRow,
  targets: readonly TargetRow[],
  holds: ReadonlyMap<string, Hold> = new Map(),
): string | undefined {
  if (rollout.pausedAt !== undefined) return undefined;
  const frozen = (cluster: string) => holds.get(cluster)?.freeze !== undefined;
  const deadlines = [
    ...targets
      .filter((target) => !frozen(target.cluster))
      .flatMap((target) => deadlineOf(target, deadlinesUnder(rollout, holds.get(target.cluster))) ?? []),
    ...rollout.carried
      .filter(({ cluster }) => !frozen(cluster))
      .map((carried) => carriedUntil(carried, rollout, holds.get(carried.cluster))),
    ...[...holds.values()].flatMap(({ freeze }) => freeze?.until ?? []),
  ];
  return deadlines.sort()[0];
}
