/** Deletes the rows of rollouts that are no stage's current one, not in progress, and no longer kept as history. */

import type { CallWork } from "#functions/rollout/read/begin-call.ts";
import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { Transaction } from "#functions/rollout/write/transaction.ts";
import { allItems } from "#shared/base/all-pages.ts";
import type { Known } from "#shared/fleet/rollout/facts.ts";
import { allPast } from "#shared/fleet/rollout/ledger.ts";
import { expiryOf } from "#shared/fleet/rows/expiry.ts";
import { keys, ranges } from "#shared/fleet/rows/keys.ts";
import { isNewer, type RowRange } from "#shared/fleet/rows/row.ts";
import type { RowOf } from "#shared/fleet/rows/stored-row.ts";
import type { Table } from "#shared/ports.ts";

/**
 * Deletes a page of the rows of the first past rollout. Deleted rows are not found again, so that no cursor is needed.
 * Numbers and snapshots are never used twice, so that nobody writes such a row again.
 * @returns undefined when none is left.
 */
export async function collectPast(
  known: Known,
  _work: CallWork,
  ports: PlannerPorts,
): Promise<Transaction | undefined> {
  const [number, ...others] = known.rolloutState.past ?? [];
  if (number === undefined) return undefined;
  const transaction = new Transaction(known, ports.clock.now());
  const page = await oldRows(transaction, number, ports.table);
  for (const row of page.rows) transaction.delete(row);
  if (!page.isFull) transaction.edit({ past: others.length === 0 ? undefined : others });
  return transaction;
}

/**
 * When an owner is deleted, only its last rollout is kept, because it may still have to be reported; that row expires.
 * @returns undefined when there is no more to delete.
 */
export async function collectAll(known: Known, work: CallWork, ports: PlannerPorts): Promise<Transaction | undefined> {
  const [newest, ...others] = known.rolloutState.ledger;
  const transaction = new Transaction(known, ports.clock.now());
  if (others.length > 0) {
    transaction.edit({
      ledger: known.rolloutState.ledger.slice(0, 1),
      ...allPast({ ...known.rolloutState, ledger: others }),
    });
    return transaction;
  }
  const collected = await collectPast(known, work, ports);
  if (collected !== undefined || newest === undefined) return collected;
  const { rows } = await oldRows(transaction, newest.number, ports.table);
  const unmarked = rows.filter((row) => row.type !== "Target" && row.expiresAt === undefined);
  for (const row of unmarked) transaction.put({ ...row, expiresAt: expiryOf(transaction.now) }, row);
  // In a step of its own: a stage run is never written without the rows that it counts.
  if (unmarked.length === 0) for (const row of rows) if (row.type === "Target") transaction.delete(row);
  return transaction.hasChanged() ? transaction : undefined;
}

/** As many rows as one step writes. Nobody changes rows of a newer version. */
async function oldRows(transaction: Transaction, number: number, table: Table) {
  const { owner } = transaction.known;
  const most = transaction.room();
  const rows: RowOf<"Target" | "Alarms" | "StageRun" | "Rollout">[] = [];
  const parts: readonly RowRange<"Target" | "Alarms" | "StageRun" | "Rollout">[] = [
    // The first row to go, so that lists of rollouts lose it at once.
    { pk: keys.rollout(owner, number).pk, prefix: keys.rollout(owner, number).sk },
    ranges.alarms(owner, number),
    ranges.stageRuns(owner, number),
    ranges.rolloutTargets(owner, number),
  ];
  for (const range of parts) {
    const page = { ...range, limit: most, newer: "kept" } as const;
    for await (const row of allItems((start) => table.query({ ...page, ...start }))) {
      if (isNewer(row)) continue;
      if (rows.length === most) return { rows, isFull: true };
      rows.push(row);
    }
  }
  return { rows, isFull: false };
}
