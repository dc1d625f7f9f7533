import { forgetSyncs, toForget } from "#functions/rollout/forget.ts";
import { clustersWithSyncs, recallMembers } from "#functions/rollout/members.ts";
import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import type { Known } from "#functions/rollout/read-subject.ts";
import { rowsAbout } from "#functions/rollout/rows-about.ts";
import { Transaction } from "#functions/rollout/transaction.ts";
import { inParts } from "#shared/base/in-parts.ts";
import { isThrough } from "#shared/fleet/rollout/feed.ts";
import { relationOf } from "#shared/fleet/rollout/plan.ts";
import { changingOf } from "#shared/fleet/rollout/slots.ts";
import { due } from "#shared/fleet/rows/due.ts";
import { arrivalStates, keys, ranges, syncName } from "#shared/fleet/rows/keys.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import type { Write } from "#shared/ports.ts";

const pageSize = 20;

export function isGoing({ row }: Pick<Known, "row">, cascade: "delete" | "orphan"): boolean {
  return row.operations.deletion?.cascade === cascade;
}

/** The objects stay, and nothing is waited for: a page of its Syncs is forgotten. @returns `done` when none is left. */
export async function forgetSubject(known: Known, ports: PlannerPorts): Promise<Transaction | "done"> {
  const { subject, unit } = known;
  const clusters = await everyCluster(known, ports);
  const transaction = new Transaction(known, ports.clock.now());
  for (let at = 0; at < clusters.length && !transaction.hasChanged(); at += pageSize) {
    const wanted = clusters.slice(at, at + pageSize).flatMap((cluster) => syncKeys(cluster, { subject, unit }));
    const rows = await ports.table.getMany(wanted, { newer: "kept" });
    const syncs = rows.filter((row) => row.type === "SyncOnCluster");
    const page = toForget(syncs, "deselected").slice(0, transaction.room());
    forgetSyncs(transaction, { syncs: page, as: "deselected" }, ports);
  }
  if (transaction.hasChanged()) return transaction;
  const slots = await rowsAbout(ranges.slots(subject), ports.table, transaction.room());
  for (const slot of slots.rows) transaction.dropSlot(slot);
  if (transaction.hasChanged()) return transaction;
  return (await dropArrivals(known, ports)) ?? remove(known, ports);
}

/** The last steps of a deletion, when nothing is left in any cluster. @returns undefined while that is not so. */
export async function farewell(known: Known, ports: PlannerPorts): Promise<Transaction | "done" | undefined> {
  const { unit, contents } = known;
  const isDeleted = unit.last === 0 || contents.get(unit.last)?.plan.farewell !== undefined;
  if (!isDeleted || !isThrough(unit) || changingOf(unit) > 0) return undefined;
  if (await isSomethingLeft(known, ports)) {
    // Whoever came to a stage after its leg was sealed: once more through all stages.
    const transaction = new Transaction(known, ports.clock.now());
    transaction.edit({ inputsVersion: unit.inputsVersion + 1 });
    return transaction;
  }
  return (await dropArrivals(known, ports)) ?? remove(known, ports);
}

/** Of what was ever assigned, by the rows themselves: an index may be behind. */
async function isSomethingLeft(known: Known, { table, ...ports }: PlannerPorts): Promise<boolean> {
  const { subject, unit } = known;
  const clusters = await everyCluster(known, { table, ...ports });
  for (const part of inParts(clusters, pageSize)) {
    const wanted = part.flatMap((cluster) => syncKeys(cluster, { subject, unit }));
    const rows = await table.getMany(wanted, { newer: "kept" });
    if (rows.some((row) => isNewer(row) || row.desired.action !== "orphan")) return true;
  }
  return false;
}

/** Whoever has something by the state index, and then the members: what is left to do comes first. */
async function everyCluster(known: Known, ports: PlannerPorts): Promise<readonly string[]> {
  const members = await recallMembers(known, ports);
  const others = await clustersWithSyncs(known.subject, ports.table);
  return [...others.union(new Set(members.map(({ cluster }) => cluster)))];
}

function syncKeys(cluster: string, { subject, unit }: Pick<Known, "subject" | "unit">) {
  return unit.templates.map((name) => keys.sync(cluster, subject.namespace, syncName(subject, name)));
}

/** One of the same name that comes later has none of them. */
async function dropArrivals(known: Known, { table, clock }: PlannerPorts): Promise<Transaction | undefined> {
  const transaction = new Transaction(known, clock.now());
  for (const state of arrivalStates) {
    const found = await rowsAbout(ranges.arrivals(known.subject, state), table, transaction.room());
    for (const arrival of found.rows) transaction.dropArrival(arrival, state);
  }
  return transaction.hasChanged() ? transaction : undefined;
}

/** The subject and its directory entries go; the unit stays, so that numbers are not used twice. */
async function remove({ subject, row, unit }: Known, { table }: PlannerPorts): Promise<"done"> {
  const uses = relationOf(row).templates.map((template) => template.source);
  const { version } = unit;
  const writes: Write[] = [
    { delete: { pk: row.pk, sk: row.sk }, when: { version: row.version } },
    { delete: keys.subject(subject) },
    ...[...new Set(uses)].map((name) => ({ delete: keys.uses({ namespace: subject.namespace, name }, subject) })),
  ];
  if (version > 0) writes.push({ put: { ...due(unit, undefined), version: version + 1 }, when: { version } });
  await table.write(writes);
  return "done";
}
