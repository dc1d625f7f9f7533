import { expect } from "vitest";
import type { RolloutRow, RolloutStateRow, Skipped } from "#shared/fleet/rows/rollout-rows.ts";
import type { Change } from "#test/support/planner-model/stage-watch.ts";

interface Desired {
  /** Equal hashes mean the same rollout. */
  readonly hash: string;
  readonly revision: string;
}

/** Knows the desired revision after each run of the planner, and checks the record of skipped revisions against it. */
export class SkippedWatch {
  #desired: Desired[] = [];
  #taken = "";

  /** Notes the desired revision at the end of a complete run of the planner, which has seen it. */
  note(desired: Desired): void {
    if (this.#desired.at(-1)?.hash !== desired.hash) this.#desired.push(desired);
  }

  written(changes: readonly Change[]): void {
    for (const { before, after } of changes) {
      if (before !== undefined || after?.type !== "Rollout") continue;
      const { number, plan, skipped, trigger } = after as RolloutRow;
      // A rollback answers no revision.
      if (trigger === "rollback") continue;
      expectRecorded(`skipped before rollout ${number}`, this.#since(plan.planHash), skipped);
      [this.#desired, this.#taken] = [[], plan.planHash];
    }
  }

  /** Checks the revisions that were desired since the newest rollout and are no longer. */
  check({ desired, skipped }: Pick<RolloutStateRow, "desired" | "skipped">): void {
    const now = desired === undefined ? this.#taken : this.#desired.at(-1)?.hash;
    expectRecorded("skipped since the newest rollout", this.#since(now), skipped);
  }

  /** @param now - the hash of the finally desired revision, which is not skipped. */
  #since(now: string | undefined): readonly Desired[] {
    const all = this.#desired.at(-1)?.hash === now ? this.#desired.slice(0, -1) : this.#desired;
    return all.filter(({ hash }) => hash !== this.#taken);
  }
}

/** The record may have more, because runs that were cut short have seen more. */
function expectRecorded(what: string, desired: readonly Desired[], skipped: Skipped | undefined): void {
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
