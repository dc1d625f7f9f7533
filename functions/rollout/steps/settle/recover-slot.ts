import type { Transaction } from "#functions/rollout/write/transaction.ts";
import { defined } from "#shared/base/defined.ts";
import type { SeenSlot } from "#shared/fleet/rollout/facts.ts";
import { judge } from "#shared/fleet/rollout/judge.ts";
import { acceptedRow } from "#shared/fleet/rows/lineage.ts";
import type { OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { mayTakeOver } from "#shared/kube/parent-object.ts";

type Recovery = NonNullable<OwnerRow["operations"]["recovered"]>;

/**
 * After a `recover --all`, a Sync that its cluster refuses continues from what the cluster remembers: the new table may
 * never have assigned anything to that cluster when people asked. Each Sync does so once for each `recover`, so that
 * two tables in use at the same time do not take turns.
 * @returns the slot without these Syncs, which its cluster's next turn assigns again; undefined when none continues
 *   like that.
 */
export function goOnFromRemembered(transaction: Transaction, seen: SeenSlot): SeenSlot | undefined {
  const { slot, syncs, clock } = seen;
  const { recovered: act } = transaction.known.row.operations;
  if (act?.all !== true) return undefined;
  const refused = syncs.filter((sync) => slot.attempts[sync.name] === sync.desired.attempt && isRefused(sync, act));
  if (refused.length === 0) return undefined;
  const { by, at, reason } = act;
  for (const sync of refused) {
    transaction.put<SyncRow>(acceptedRow(sync, { by, at, ...defined({ reason }) }), sync);
  }
  const names = new Set(refused.map(({ name }) => name));
  const attempts = Object.fromEntries(Object.entries(slot.attempts).filter(([name]) => !names.has(name)));
  const left = { ...slot, attempts, unwritten: true as const };
  const others = syncs.filter(({ name }) => !names.has(name));
  const verdict = judge(left, others, clock);
  const paused = verdict.state === "Failed" ? { reason: verdict.reason, at: transaction.at } : undefined;
  if (verdict.state === "Assigned") transaction.putSlot(left, slot);
  return { ...seen, slot: left, syncs: others, verdict, paused };
}

function isRefused({ desired, observed, recovered }: SyncRow, act: Recovery): boolean {
  const { remembered } = observed ?? {};
  if (remembered === undefined || observed?.attempt !== desired.attempt || observed.phase !== "Failed") return false;
  // Objects that were applied since are protected again from another table.
  if ((observed.applied?.at ?? "") >= act.at || recovered?.at === act.at) return false;
  return mayTakeOver(remembered, act.from);
}
