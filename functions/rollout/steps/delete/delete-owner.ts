import type { CallWork } from "#functions/rollout/read/begin-call.ts";
import { type PlannerPorts, readMembers } from "#functions/rollout/read/planner-ports.ts";
import { liveEntries, rowsAbout, syncKeys } from "#functions/rollout/read/read-clusters.ts";
import { collectAll } from "#functions/rollout/steps/delete/collect-past.ts";
import { forgetAssigned } from "#functions/rollout/write/assign.ts";
import { renumber, Transaction } from "#functions/rollout/write/transaction.ts";
import { templateSources } from "#shared/fleet/kinds/template-sources.ts";
import { toForget } from "#shared/fleet/rollout/assignments.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import type { Known } from "#shared/fleet/rollout/facts.ts";
import { isThrough } from "#shared/fleet/rollout/order.ts";
import { changingOf } from "#shared/fleet/rollout/slots.ts";
import { due } from "#shared/fleet/rows/due.ts";
import { catchUpStates, keys, ranges, templateOf } from "#shared/fleet/rows/keys.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import type { Write } from "#shared/ports.ts";

/** The objects stay, and nothing waits: a page of its Syncs is forgotten. @returns `done` when none is left. */
export async function forgetOwner(known: Known, work: CallWork, ports: PlannerPorts): Promise<Transaction | "done"> {
  return (
    (await sweep(known, ports)) ??
    // This happens before the slots of stage runs are deleted.
    (await collectAll(known, work, ports)) ??
    (await dropRows(known, ports)) ??
    remove(known, ports)
  );
}

/** The last steps of a deletion, when no cluster has anything left. @returns undefined before that. */
export async function deleteOwner(
  known: Known,
  work: CallWork,
  ports: PlannerPorts,
): Promise<Transaction | "done" | undefined> {
  const { rolloutState, rollouts } = known;
  const isDeleted = rolloutState.last === 0 || rollouts.get(rolloutState.last)?.plan.deletion !== undefined;
  return isDeleted && isThrough(rolloutState) && changingOf(rolloutState) === 0
    ? forgetOwner(known, work, ports)
    : undefined;
}

/**
 * Checks a page of the clusters that may have something, by the rows themselves, because an index may lag. A Sync that
 * is found is forgotten, or goes through all stages once more: its cluster joined a stage after that stage's snapshot.
 * @returns undefined when all were checked.
 */
async function sweep(known: Known, ports: PlannerPorts): Promise<Transaction | undefined> {
  const { rolloutState } = known;
  const transaction = new Transaction(known, ports.clock.now());
  if (rolloutState.sweep === undefined) {
    const entries = await liveEntries(known.owner, ports.table);
    const clusters = await ports.lists.store(await everyCluster(known, entries, ports));
    // This uses everything that the rollout state remembers: nobody searches for the others again.
    const found = entries.map(({ sync }) => templateOf(known.owner, sync));
    const templates = [...new Set([...rolloutState.templates, ...found])].sort();
    transaction.edit({ sweep: { clusters, at: 0 }, templates });
    return transaction;
  }
  const { at } = rolloutState.sweep;
  const clusters = await ports.lists.read<string>(rolloutState.sweep.clusters);
  const fitting = Math.floor(transaction.room() / Math.max(1, rolloutState.templates.length));
  const page = clusters.slice(at, at + Math.max(1, fitting));
  if (page.length === 0) return undefined;
  const desired = page.flatMap((cluster) => syncKeys(known, cluster));
  const rows = await ports.table.getMany(desired, { newer: "kept" });
  const syncs = toForget(
    rows.filter((row) => row.type === "SyncOnCluster"),
    "deselected",
  );
  if (known.row.operations.deletion?.cascade === "delete" && (syncs.length > 0 || rows.some(isNewer))) {
    transaction.edit({ sweep: undefined });
    renumber(transaction);
    return transaction;
  }
  const room = transaction.room();
  forgetAssigned(transaction, { syncs: syncs.slice(0, room), as: "deselected" }, ports);
  transaction.edit({ sweep: { ...rolloutState.sweep, at: syncs.length > room ? at : at + page.length } });
  return transaction;
}

/** Clusters with a Sync in the state index, or a slot, and then the members: remaining work comes first. */
async function everyCluster(
  known: Known,
  entries: Awaited<ReturnType<typeof liveEntries>>,
  ports: PlannerPorts,
): Promise<readonly string[]> {
  const slots = await rowsAbout(ranges.slots(known.owner), ports.table);
  const members = await readMembers(known, ports);
  return [...new Set([...entries, ...slots.rows, ...members].map(({ cluster }) => cluster))];
}

/** A later owner of the same name has none of them. */
async function dropRows(known: Known, { table, clock }: PlannerPorts): Promise<Transaction | undefined> {
  const { owner } = known;
  const transaction = new Transaction(known, clock.now());
  const slots = await rowsAbout({ ...ranges.slots(owner), limit: transaction.room() }, table);
  for (const slot of slots.rows) transaction.dropSlot(slot);
  for (const state of catchUpStates) {
    const found = await rowsAbout({ ...ranges.catchUps(owner, state), limit: transaction.room() }, table);
    for (const catchUp of found.rows) transaction.dropCatchUp(catchUp);
  }
  return transaction.hasChanged() ? transaction : undefined;
}

/** Deletes the owner and its directory entries; the rollout state stays, so that numbers are not used twice. */
async function remove({ owner, row, rolloutState }: Known, { table }: PlannerPorts): Promise<"done"> {
  const uses = relationOf(row).templates.flatMap(templateSources);
  const { version } = rolloutState;
  const writes: Write[] = [
    { delete: { pk: row.pk, sk: row.sk }, when: { version: row.version } },
    { delete: keys.owner(owner) },
    ...[...new Set(uses)].map((name) => ({ delete: keys.uses({ namespace: owner.namespace, name }, owner) })),
  ];
  if (version > 0) writes.push({ put: { ...due(rolloutState, undefined), version: version + 1 }, when: { version } });
  await table.write(writes);
  return "done";
}
