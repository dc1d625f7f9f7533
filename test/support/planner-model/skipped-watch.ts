import { expect } from "vitest";
import type { RolloutRow, RolloutStateRow, Skipped } from "#shared/fleet/rows/rollout-rows.ts";
import type { Change } from "#test/support/planner-model/stage-watch.ts";

interface Wanted {
  /** Equal ones are the same content. */
  readonly hash: string;
  readonly revision: string;
}

/** Knows what was wanted whenever a run of the planner was through, and holds the record of skipped contents against it. */
export class SkippedWatch {
  #desired: Wanted[] = [];
  #taken = "";

  /** At the end of a run that nothing cut short: of what it saw of people's wishes it knows. */
  wants(desired: Wanted): void {
    if (this.#desired.at(-1)?.hash !== desired.hash) this.#desired.push(desired);
  }

  written(changes: readonly Change[]): void {
    for (const { before, after } of changes) {
      if (before !== undefined || after?.type !== "Rollout") continue;
      const { number, plan, skipped } = after as RolloutRow;
      expectRecorded(`skipped before content ${number}`, this.#since(plan.planHash), skipped);
      [this.#desired, this.#taken] = [[], plan.planHash];
    }
  }

  /** What was wanted since the newest content, and is no more. */
  check({ desired, skipped }: Pick<RolloutStateRow, "desired" | "skipped">): void {
    const now = desired === undefined ? this.#taken : this.#desired.at(-1)?.hash;
    expectRecorded("skipped since the newest content", this.#since(now), skipped);
  }

  /** @param now - what is wanted at the end; that is not skipped. */
  #since(now: string | undefined): readonly Wanted[] {
    const all = this.#desired.at(-1)?.hash === now ? this.#desired.slice(0, -1) : this.#desired;
    return all.filter(({ hash }) => hash !== this.#taken);
  }
}

/** Runs that were cut short may have seen more. */
function expectRecorded(what: string, desired: readonly Wanted[], skipped: Skipped | undefined): void {
  expect(skipped?.count ?? 0, `${what}: ${JSON.stringify(desired)}`).toBeGreaterThanOrEqual(desired.length);
  const [first, last] = [desired[0], desired.at(-1)].map((one) => numberOf(one?.revision));
  const [from, to] = [numberOf(skipped?.from), numberOf(skipped?.to)];
  if (first !== undefined && from !== undefined) expect(from, `${what}: the first`).toBeLessThanOrEqual(first);
  if (last !== undefined && to !== undefined) expect(to, `${what}: the last`).toBeGreaterThanOrEqual(last);
}

/** Commits of the model are numbered; that of a deletion has none. */
function numberOf(revision: string | undefined): number | undefined {
  const digits = /commit(\d+)$/.exec(revision ?? "")?.[1];
  return digits === undefined ? undefined : Number(digits);
}
