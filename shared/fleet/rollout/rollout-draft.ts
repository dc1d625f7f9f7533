import { defined } from "#shared/base/defined.ts";
import type { Advance, Assignment, PlannerState, RenderingRequest } from "#shared/fleet/rollout/decision.ts";
import { deadlineOf, type Verdict } from "#shared/fleet/rollout/judge.ts";
import { type Freeze, freezeText } from "#shared/fleet/rows/brake-row.ts";
import type {
  RolloutPhase,
  RolloutRow,
  RolloutStage,
  TargetRow,
  TargetState,
} from "#shared/fleet/rows/rollout-rows.ts";
import { orphaning, type SyncRow } from "#shared/fleet/rows/sync-row.ts";

/** A rollout keeps so many transitions and failures in its row. */
const keptTransitions = 20;
const keptFailures = 10;
/** And so many names of clusters that were assigned nothing: far below the row's 400 KB. */
const keptUnassigned = 1500;

const changingStates: readonly TargetState[] = ["Assigned", "Applying", "Verifying"];

/**
 * One rollout while it is being decided about: keeps the counts of every stage equal to the states of its targets, and
 * `outstanding` and `parked` equal to those that hold a slot or are unreachable.
 */
export class RolloutDraft {
  readonly #before: RolloutRow;
  #rollout: RolloutRow;
  readonly #now: string;
  readonly #room: number;
  readonly #given: ReadonlyMap<number, TargetRow>;
  readonly #targets = new Map<number, TargetRow>();
  readonly #assignments: Assignment[] = [];
  #assigned = 0;
  readonly #removals: SyncRow[] = [];
  readonly #requests = new Map<string, RenderingRequest>();

  constructor(state: PlannerState, at: { readonly now: Date; readonly room: number }) {
    this.#before = state.rollout;
    this.#rollout = state.rollout;
    this.#given = new Map(state.targets.map((target) => [target.order, target]));
    this.#now = at.now.toISOString();
    this.#room = at.room;
  }

  /** Rows that still fit; with the assignments of a cluster goes a check that it is still registered. */
  room(): number {
    return this.#room - this.#targets.size - this.#assigned - this.#assignments.length - this.#removals.length;
  }

  get rollout(): RolloutRow {
    return this.#rollout;
  }

  get phase(): RolloutPhase {
    return this.#rollout.phase;
  }

  stage(): RolloutStage {
    const stage = this.#rollout.stages[this.#rollout.stage];
    if (stage === undefined) throw new Error(`rollout ${this.#rollout.number} has no stage ${this.#rollout.stage}`);
    return stage;
  }

  current(target: TargetRow): TargetRow {
    return this.#known(target.order) ?? target;
  }

  isOutstanding(target: TargetRow): boolean {
    return this.#rollout.outstanding.some((ref) => ref.order === target.order);
  }

  isParked(target: TargetRow): boolean {
    return this.#rollout.parked.some((ref) => ref.order === target.order);
  }

  /** Those that wait, whose stage has begun: the ones that came back first, then in order. */
  inTurn(targets: readonly TargetRow[]): TargetRow[] {
    const returned = new Set(this.#rollout.returned.map((ref) => ref.order));
    return targets
      .filter((target) => target.stage <= this.#rollout.stage && isWaiting(this.current(target).state))
      .sort((a, b) => Number(returned.has(b.order)) - Number(returned.has(a.order)) || a.order - b.order);
  }

  isCarried(cluster: string): boolean {
    return this.#rollout.carried.some((carried) => carried.cluster === cluster);
  }

  carriedCount(): number {
    return this.#rollout.carried.length;
  }

  keepCarried(keep: (carried: RolloutRow["carried"][number]) => boolean): void {
    const carried = this.#rollout.carried.filter(keep);
    if (carried.length !== this.#rollout.carried.length) this.#rollout = { ...this.#rollout, carried };
  }

  /** Clusters that are changing now: those with a slot, and those an earlier rollout left changing. */
  changing(): number {
    return this.#rollout.outstanding.length + this.#rollout.carried.length;
  }

  /** Clusters that the rollout's row names one by one. */
  named(): number {
    return this.changing() + this.#rollout.parked.length;
  }

  /** Targets in a state, in the stages that have begun. */
  count(state: TargetState): number {
    let sum = 0;
    for (const { counts } of this.#rollout.stages.slice(0, this.#rollout.stage + 1)) sum += counts[state];
    return sum;
  }

  /** Targets of the stages that have begun which wait or change. */
  unfinished(): number {
    return this.count("Waiting") + this.count("Rendering") + this.changingTargets();
  }

  changingTargets(): number {
    return this.#rollout.outstanding.length;
  }

  /** Failed targets that count against the budget. */
  failures(): number {
    return this.count("Failed") - this.#rollout.preexistingFailures;
  }

  worstFailure(): string {
    const last = this.#rollout.failures.at(-1);
    return last === undefined ? "" : `${last.cluster}: ${last.reason}`;
  }

  progressed(): boolean {
    return this.#rollout !== this.#before;
  }

  /**
   * Puts a target into a state, and the counts with it. The same state again changes nothing, whatever the reason: a
   * look that could only reword would write for ever.
   */
  move(target: TargetRow, to: Verdict): void {
    const from = this.current(target);
    if (from.state === to.state) return;
    this.#replace({ ...from, state: to.state, reason: to.reason, ...(isEnd(to.state) ? { endedAt: this.#now } : {}) });
    if (to.state === "Failed" && from.state !== "Failed") this.#recordFailure(from, to.reason);
  }

  /** Its cluster is frozen: it keeps its place, and what it waits for is told. */
  hold(target: TargetRow, freeze: Freeze): void {
    const from = this.current(target);
    if (from.frozen === freeze.name) return;
    this.#replace({ ...from, state: "Waiting", reason: freezeText(freeze), frozen: freeze.name });
  }

  /** No freeze holds it any more. */
  release(target: TargetRow): TargetRow {
    const { frozen, ...from } = this.current(target);
    if (frozen === undefined) return from;
    const released = { ...from, reason: "" };
    this.#replace(released);
    return released;
  }

  /** Suspended time spends no deadline: what was assigned before starts its deadline anew, and so does what is carried. */
  pause(suspended: boolean): void {
    const { pausedAt, ...rest } = this.#rollout;
    if (suspended && pausedAt === undefined) this.#rollout = { ...rest, pausedAt: this.#now };
    if (!suspended && pausedAt !== undefined) {
      const until = deadlineOf({ assignedAt: this.#now }, { strategy: rest.strategy }) ?? this.#now;
      const carried = rest.carried.map(({ cluster }) => ({ cluster, until }));
      this.#rollout = { ...rest, carried, resumedAt: this.#now };
    }
  }

  /** Rows of Syncs that were deleted from the cluster. An orphan's row stays: its attempts must never repeat. */
  removeGone(target: TargetRow, syncs: readonly SyncRow[]): void {
    for (const sync of syncs) {
      if (target.attempts[sync.name] === sync.desired.attempt && sync.desired.action === "delete")
        this.#removals.push(sync);
    }
  }

  assign(
    target: TargetRow,
    assigned: { readonly assignments: readonly Assignment[]; readonly preexisting: boolean },
  ): void {
    const attempts = Object.fromEntries(assigned.assignments.map(({ name, desired }) => [name, desired.attempt]));
    this.#replace({
      ...target,
      state: "Assigned",
      reason: "waiting for the cluster's worker",
      attempts,
      assignedAt: this.#now,
      ...(assigned.preexisting ? { preexisting: true } : {}),
    });
    this.#assigned++;
    this.#assignments.push(...assigned.assignments);
    this.keepCarried((carried) => carried.cluster !== target.cluster);
  }

  /** Assignments that no worker carries out: nothing of them is waited for. */
  settle(target: TargetRow, assignments: readonly Assignment[]): void {
    this.assign(target, { assignments, preexisting: false });
    this.move(target, { state: "Succeeded", reason: "forgotten; its objects stay" });
  }

  /** A cluster that is no longer selected: its Syncs are forgotten, its objects stay. */
  forget(target: TargetRow, names: readonly string[], syncs: readonly SyncRow[]): void {
    const known = syncs.filter((sync) => names.includes(sync.name) && sync.desired.action !== "orphan");
    for (const sync of known) {
      this.#assignments.push({
        cluster: target.cluster,
        name: sync.name,
        desired: orphaning(sync.desired, { rollout: this.#rollout.number, assignedAt: this.#now }),
      });
    }
    if (target.leaving !== true) this.#rollout = { ...this.#rollout, left: [...this.#rollout.left, target.cluster] };
    this.move(target, { state: "Skipped", reason: "no longer selected; its objects stay" });
    this.keepCarried((carried) => carried.cluster !== target.cluster);
  }

  request(index: number, target: TargetRow): void {
    const template = this.#rollout.plan.templates[index];
    const input = target.inputs[index];
    if (template === undefined || input === undefined || "problem" in input) return;
    this.#requests.set(input.digest, {
      input: input.digest,
      source: template.source,
      artifactDigest: template.artifactDigest,
      path: input.path,
      ...defined({ render: template.render }),
    });
  }

  /** Ends the stage and begins the next. @returns false when it was the last. */
  completeStage(): boolean {
    const ended = this.#rollout.stage;
    if (this.stage().endedAt === undefined) this.#editStage(ended, (stage) => ({ ...stage, endedAt: this.#now }));
    if (ended + 1 >= this.#rollout.stages.length) return false;
    this.#rollout = { ...this.#rollout, stage: ended + 1 };
    this.#editStage(ended + 1, (stage) => ({ ...stage, startedAt: this.#now }));
    const next = this.stage();
    const size = next.size === 0 ? "empty: passes at once" : `${next.size} clusters`;
    this.explain("StageStarted", `stage ${next.name} started (${size})`);
    return true;
  }

  explain(reason: string, message: string): void {
    if (this.#rollout.reason === reason && this.#rollout.message === message) return;
    this.#rollout = { ...this.#rollout, reason, message };
    this.#record();
  }

  finish(phase: "Halted" | "Complete", reason: string, message: string): void {
    const ended = phase === "Complete" ? { endedAt: this.#now } : {};
    this.#rollout = { ...this.#rollout, phase, reason, message, ...ended };
    this.#record();
  }

  result(answer: { readonly again: boolean }): Advance {
    this.#moveCursor();
    return {
      rollout: this.#rollout,
      targets: [...this.#targets.values()],
      assignments: this.#assignments,
      removals: this.#removals,
      requests: [...this.#requests.values()],
      again: answer.again,
    };
  }

  #replace(target: TargetRow): void {
    const from = this.current(target);
    this.#targets.set(target.order, target);
    if (from.state === target.state) return;
    this.#editStage(target.stage, (stage) => ({
      ...stage,
      counts: {
        ...stage.counts,
        [from.state]: stage.counts[from.state] - 1,
        [target.state]: stage.counts[target.state] + 1,
      },
    }));
    const ref = { order: target.order, cluster: target.cluster };
    const without = <T extends { readonly order: number }>(refs: readonly T[]) =>
      refs.filter((other) => other.order !== ref.order);
    const outstanding = without(this.#rollout.outstanding);
    const parked = without(this.#rollout.parked);
    const returned = without(this.#rollout.returned);
    const returns = !isWaiting(from.state) || returned.length < this.#rollout.returned.length;
    this.#rollout = {
      ...this.#rollout,
      outstanding: changingStates.includes(target.state) ? [...outstanding, ref] : outstanding,
      parked: target.state === "Unreachable" ? [...parked, ref] : parked,
      returned: returns && isWaiting(target.state) ? [...returned, ref] : returned,
    };
  }

  #recordFailure(target: TargetRow, reason: string): void {
    const failures = [...this.#rollout.failures, { cluster: target.cluster, reason }].slice(-keptFailures);
    const preexistingFailures = this.#rollout.preexistingFailures + (target.preexisting === true ? 1 : 0);
    const nothing = Object.keys(target.attempts).length === 0;
    const before = this.#rollout.unassigned ?? [];
    const names = nothing ? { unassigned: [...before, target.cluster].slice(0, keptUnassigned) } : {};
    this.#rollout = { ...this.#rollout, failures, preexistingFailures, ...names };
  }

  #editStage(index: number, edit: (stage: RolloutStage) => RolloutStage): void {
    const stages = this.#rollout.stages.map((stage, at) => (at === index ? edit(stage) : stage));
    this.#rollout = { ...this.#rollout, stages };
  }

  /** Past the targets that no longer wait, as far as they were given in order. */
  #moveCursor(): void {
    const stage = this.stage();
    let cursor = stage.cursor;
    for (
      let target = this.#known(cursor);
      target !== undefined && !isWaiting(target.state);
      target = this.#known(cursor)
    ) {
      cursor++;
    }
    if (cursor !== stage.cursor) this.#editStage(this.#rollout.stage, (before) => ({ ...before, cursor }));
  }

  #known(order: number): TargetRow | undefined {
    return this.#targets.get(order) ?? this.#given.get(order);
  }

  #record(): void {
    const { phase, reason, message, transitions } = this.#rollout;
    const next = [...transitions, { at: this.#now, phase, reason, message }].slice(-keptTransitions);
    this.#rollout = { ...this.#rollout, transitions: next };
  }
}

function isWaiting(state: TargetState): boolean {
  return state === "Waiting" || state === "Rendering";
}

function isEnd(state: TargetState): boolean {
  return state === "Succeeded" || state === "Unchanged" || state === "Failed" || state === "Skipped";
}
