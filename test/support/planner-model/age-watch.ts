import { expect } from "vitest";
import { resolveCount, secondsOf } from "#shared/fleet/kinds/quantities.ts";
import { bakeOf } from "#shared/fleet/rollout/bake.ts";
import { freezeOfBake } from "#shared/fleet/rollout/bake-freezes.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import { countHeld, frozenIn } from "#shared/fleet/rollout/holding.ts";
import { rejectedNewest } from "#shared/fleet/rollout/order.ts";
import { isRejected } from "#shared/fleet/rollout/rejection.ts";
import { isStalled, stageRunKey } from "#shared/fleet/rollout/stage-runs.ts";
import type { OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import type { RolloutStateRow, StageRecord, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";

interface Seen {
  readonly now: Date;
  readonly rolloutState: RolloutStateRow | undefined;
  readonly group: OwnerRow | undefined;
  readonly stageRuns: readonly StageRunRow[];
}

/** The longest time until a tick finds a cluster whose message was lost and whose lease was not released. */
const workerSeconds = 150;
/** After a bake, its alarms are read once more, by one of the next ticks. */
const alarmSeconds = 120;

/**
 * Checks how long each rollout and the catch-ups take when nothing goes wrong any more. A rollout's time ends when it, or a
 * newer one, has passed the last stage. Rollouts that people have stopped, with a command or a freeze, do not count.
 */
export class AgeWatch {
  /** The start times by number of the rollout, and of the catch-ups. */
  readonly #since = new Map<number | "queue", number>();
  #longest = { rollouts: 0, queue: 0 };

  /** @param isOver - nothing continues by itself any more, so a rollout in progress would never end. */
  check(seen: Seen, isOver: boolean): void {
    const { rolloutState, group, now, stageRuns } = seen;
    const isGoing = group?.operations.deletion !== undefined;
    if (isGoing) this.#since.clear();
    if (rolloutState === undefined || group === undefined || isGoing) return;
    // A rollback concerns only the stages that it covers, and what a stage went back from goes no further.
    const back = rolloutState.stages.flatMap(({ current = 0 }) => {
      const { rollback } = rolloutState.ledger.find(({ number }) => number === current) ?? {};
      return rollback === undefined ? [] : [{ from: rollback, to: current }];
    });
    const planned = rolloutState.ledger.filter(({ rollback }) => rollback === undefined);
    const numbers = planned
      .map(({ number }) => number)
      .filter((number) => !isRejected(rolloutState, number))
      .filter((number) => !back.some(({ from, to }) => from < number && number < to));
    if (rolloutState.desired !== undefined) numbers.push(rolloutState.last + 1);
    const under = new Set(numbers.filter((number) => stageOf(number, seen) !== undefined));
    const waiting = new Set<number | "queue">(
      rolloutState.catchUps.waiting > 0 && isServed(rolloutState, group) ? [...under, "queue"] : under,
    );
    for (const key of this.#since.keys()) if (!waiting.has(key)) this.#since.delete(key);
    for (const key of waiting) if (!this.#since.has(key)) this.#since.set(key, now.getTime());
    this.#remember(rolloutState, group, stageRuns);
    // A rollout that went back by itself waits for a newer commit, and so does everything that had begun before it.
    const isAtRest = rejectedNewest(rolloutState) !== undefined;
    for (const [key, since] of this.#since) {
      const seconds = (now.getTime() - since) / 1000;
      const what = key === "queue" ? "catch-ups wait" : `rollout ${key} is in progress`;
      const bound = key === "queue" ? this.#longest.queue : 2 * this.#longest.rollouts;
      expect(isOver && !isAtRest ? Number.POSITIVE_INFINITY : seconds, `${what}: seconds`).toBeLessThanOrEqual(bound);
    }
  }

  /** Remembers the longest bounds, because clusters join and leave meanwhile. */
  #remember({ stages, catchUps }: RolloutStateRow, group: OwnerRow, stageRuns: readonly StageRunRow[]): void {
    const { rollout } = relationOf(group);
    const members = stages.reduce((sum, stage) => sum + stage.members, 0);
    const most = Math.max(1, resolveCount(rollout.maxConcurrent, members));
    const wave = secondsOf(rollout.progressDeadline) + workerSeconds;
    const atOnce = stages.map(({ name, members }) => {
      const own = rollout.stages.find((one) => one.name === name)?.maxConcurrent;
      return own === undefined ? most : Math.min(most, Math.max(1, resolveCount(own, members)));
    });
    const waves = stages.reduce(
      (sum, stage, index) => sum + Math.max(1, Math.ceil(stage.members / (atOnce[index] ?? 1))),
      0,
    );
    const bakes = stageRuns.map((stageRun) => secondsOf(bakeOf(stageRun) ?? "0s"));
    const longest = Math.max(0, ...bakes);
    const baking = longest === 0 ? 0 : stages.length * (longest + alarmSeconds + wave);
    // Stage runs take turns with catch-ups.
    const queue = Math.max(1, Math.ceil(catchUps.waiting / Math.min(...atOnce))) * (stages.length + 1);
    this.#longest = {
      rollouts: Math.max(this.#longest.rollouts, waves * wave + baking),
      queue: Math.max(this.#longest.queue, queue * wave),
    };
  }
}

/** The stage that a rollout is in. @returns undefined when it has passed, is stalled, or is held by a freeze. */
function stageOf(number: number, { rolloutState, stageRuns }: Seen): StageRecord | undefined {
  // Without any cluster no newer rollout is started.
  if (rolloutState?.stages.every(({ members }) => members === 0)) return undefined;
  // A removed stage had not passed this rollout, so only a newer one continues.
  if (rolloutState?.stages.some(({ bar }) => bar !== undefined && number > bar.above && number <= bar.upTo))
    return undefined;
  const stage = rolloutState?.stages.find(({ current = 0 }) => current < number);
  const updatingTo = stage?.updatingTo;
  const stageRun = updatingTo && stageRuns.find((one) => stageRunKey(one) === stageRunKey(updatingTo));
  if (stageRun === undefined) return stage;
  const isPeoples = stageRun.rollout >= number && isStalled(stageRun);
  return isPeoples || frozenIn(stageRun).length > 0 || isFrozenBake(stageRun) ? undefined : stage;
}

/** A freeze of all its clusters has stopped the clock of the bake. */
export function isFrozenBake({ phase, bake }: StageRunRow): boolean {
  return phase === "Baking" && bake !== undefined && freezeOfBake(bake) !== undefined;
}

/** Whether no catch-up waits for a freeze, or because others failed. */
function isServed({ stages, catchUpsHeld }: RolloutStateRow, group: OwnerRow): boolean {
  const { maxFailures } = relationOf(group).rollout;
  const isFrozen = countHeld(catchUpsHeld ?? { holds: [] }, "freeze") > 0;
  return !isFrozen && stages.every((one) => one.failedCatchUps <= Math.max(1, resolveCount(maxFailures, one.members)));
}
