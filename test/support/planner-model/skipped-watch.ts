import { expect } from "vitest";
import type { ContentRow, Skipped, UnitRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { Change } from "#test/support/planner-model/stage-watch.ts";

interface Wanted {
  /** Equal ones are the same content. */
  readonly hash: string;
  readonly revision: string;
}

/** Knows what was wanted whenever a run of the planner was through, and holds the record of skipped contents against it. */
export class SkippedWatch {
  #wanted: Wanted[] = [];
  #taken = "";

  /** At the end of a run that nothing cut short: of what it saw of people's wishes it knows. */
  wants(wanted: Wanted): void {
    if (this.#wanted.at(-1)?.hash !== wanted.hash) this.#wanted.push(wanted);
  }

  written(changes: readonly Change[]): void {
    for (const { before, after } of changes) {
      if (before !== undefined || after?.type !== "Content") continue;
      const { number, plan, skipped } = after as ContentRow;
      expectRecorded(`skipped before content ${number}`, this.#since(plan.contentHash), skipped);
      [this.#wanted, this.#taken] = [[], plan.contentHash];
    }
  }

  /** What was wanted since the newest content, and is no more. */
  check({ wanted, skipped }: Pick<UnitRow, "wanted" | "skipped">): void {
    const now = wanted === undefined ? this.#taken : this.#wanted.at(-1)?.hash;
    expectRecorded("skipped since the newest content", this.#since(now), skipped);
  }

  /** @param now - what is wanted at the end; that is not skipped. */
  #since(now: string | undefined): readonly Wanted[] {
    const all = this.#wanted.at(-1)?.hash === now ? this.#wanted.slice(0, -1) : this.#wanted;
    return all.filter(({ hash }) => hash !== this.#taken);
  }
}

/** Runs that were cut short may have seen more. */
function expectRecorded(what: string, wanted: readonly Wanted[], skipped: Skipped | undefined): void {
  expect(skipped?.count ?? 0, `${what}: ${JSON.stringify(wanted)}`).toBeGreaterThanOrEqual(wanted.length);
  const [first, last] = [wanted[0], wanted.at(-1)].map((one) => numberOf(one?.revision));
  const [from, to] = [numberOf(skipped?.from), numberOf(skipped?.to)];
  if (first !== undefined && from !== undefined) expect(from, `${what}: the first`).toBeLessThanOrEqual(first);
  if (last !== undefined && to !== undefined) expect(to, `${what}: the last`).toBeGreaterThanOrEqual(last);
}

/** Commits of the model are numbered; that of a deletion has none. */
function numberOf(revision: string | undefined): number | undefined {
  const digits = /commit(\d+)$/.exec(revision ?? "")?.[1];
  return digits === undefined ? undefined : Number(digits);
}
