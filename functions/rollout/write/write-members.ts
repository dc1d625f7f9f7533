/** Writes the list of an owner's members, and the work that follows from its changes. */

import { type Fleet, readFleet } from "#functions/rollout/read/fleet.ts";
import { nobodyChecked, type PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { rowsAbout } from "#functions/rollout/read/read-clusters.ts";
import { guardMembers } from "#functions/rollout/write/guard-members.ts";
import { Transaction } from "#functions/rollout/write/transaction.ts";
import { defined } from "#shared/base/defined.ts";
import { compareText } from "#shared/base/text-order.ts";
import { ownerFields } from "#shared/fleet/log-fields.ts";
import { type Member, memberChanges, membersOf, relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import {
  isSame,
  type Known,
  keptUnreadable,
  renamedStages,
  selectedNow,
  stageNames,
} from "#shared/fleet/rollout/facts.ts";
import { formerAfter, stagesNamed, verifiedBy, withNameOfStage } from "#shared/fleet/rollout/order.ts";
import { changingOf } from "#shared/fleet/rollout/slots.ts";
import { fleetChanges, lastWritten } from "#shared/fleet/rows/fleet-version.ts";
import { ranges } from "#shared/fleet/rows/keys.ts";

/** Uses the whole part of the fleet that may be selected. @param before - as in `Before`. */
export async function membersAnew(known: Known, before: readonly Member[], ports: PlannerPorts): Promise<Transaction> {
  const fleet = await readFleet(relationOf(known.row).clusters, ports.table);
  return membersFrom(fleet, { known, before }, ports);
}

export async function membersFrom(fleet: Fleet, { known, before }: Before, ports: PlannerPorts): Promise<Transaction> {
  const { rolloutState, row, owner } = known;
  const relation = relationOf(row);
  const { stages } = relation.rollout;
  const version = rolloutState.membersVersion + 1;
  const renamed = renamedStages(known);
  const former = before.map((member) => ({ ...member, stage: renamed.get(member.stage) ?? member.stage }));
  // A selected cluster that cannot be read stays as it was: it is neither gone nor anything else. An unchanged cluster
  // stays as well.
  const unread = former.filter(({ cluster }) => fleet.unreadable.has(cluster));
  const same = former.filter(({ cluster }) => !fleet.isRead(cluster));
  const selectedMembers = [...membersOf(relation, fleet.clusters, version), ...unread, ...same];
  const { members: guarded, guard } = await guardMembers({ known, former, found: selectedMembers, fleet }, ports);
  const found = guarded.toSorted(byName);
  const newest = known.rollouts.get(rolloutState.last);
  const { members, joined, left, relabelled, otherInputs } = memberChanges(former, found, newest?.plan);
  const transaction = new Transaction(known, ports.clock.now());
  checkEntries(transaction, fleet);
  if (guard !== rolloutState.guard) transaction.edit({ guard });
  const selected = defined({ ...selectedNow(known), unread: unreadStrangers(fleet, { known, before }) });
  if (isSame({ before, members }, known, { ...selected, missing: fleet.missing }) && unread.length === 0) {
    transaction.edit({ selected });
    return transaction;
  }
  const counts = new Map(stages.map(({ name }) => [name, 0]));
  for (const { stage } of members) counts.set(stage, (counts.get(stage) ?? 0) + 1);
  renameStages(transaction, renamed);
  if (left.length > 0) transaction.addJobs({ do: "leave", clusters: await ports.lists.store(left), at: 0 });
  // When nothing was ever taken, the first stage runs have every cluster.
  const catchingUp = rolloutState.last === 0 ? [] : [...joined, ...relabelled];
  if (catchingUp.length > 0)
    transaction.addJobs({ do: "catchUp", clusters: await ports.lists.store(catchingUp), at: 0 });
  endRemovedStages(transaction, new Set(stageNames(relation)));
  const isEdited = rolloutState.selected?.by !== selected.by;
  const verified = isEdited ? { verified: verifiedBy(members, former, transaction.rolloutState) } : {};
  const named = stagesNamed(transaction.rolloutState, stageNames(relation), { members: counts, ...verified });
  const passed = formerAfter(transaction.rolloutState, named);
  transaction.edit({
    stages: named,
    ...(passed === 0 ? {} : { former: passed }),
    selected,
    members: await ports.lists.store(members),
    // This is the first list: none is older.
    blobsAt: rolloutState.members === undefined ? transaction.at : rolloutState.blobsAt,
    membersVersion: version,
    missing: fleet.missing,
    inputsVersion: rolloutState.inputsVersion + (otherInputs ? 1 : 0),
    checking: rolloutState.checking && { ...rolloutState.checking, ...nobodyChecked },
  });
  await countReturnedSlots(transaction, ports);
  for (const { cluster } of unread) transaction.cannotRead(cluster);
  ports.log.info("members of the owner changed", { ...ownerFields(owner), joined: joined.length, left: left.length });
  return transaction;
}

/**
 * The version of the directory counts for good, but an entry may be read as it was before the transaction that raised
 * the version: DynamoDB isolates a transaction from each read, not from two of them. So the entries that were written
 * last must still be the ones that were read when this is committed.
 */
function checkEntries(transaction: Transaction, { checkOf }: Fleet): void {
  const { rolloutState, fleetParts } = transaction.known;
  const since = rolloutState.selected === undefined ? undefined : fleetChanges(rolloutState.selected.fleet, fleetParts);
  const written = new Set([...(since?.clusters ?? []), ...lastWritten(fleetParts)]);
  const checks = [...written].flatMap((cluster) => checkOf(cluster) ?? []);
  for (const check of checks.slice(0, Math.max(0, transaction.room()))) transaction.write(check);
}

/** The first few clusters that only a newer version can read: when one of them becomes readable, every cluster is read. */
function unreadStrangers({ unreadable, isRead }: Fleet, { known, before }: Before): readonly string[] | undefined {
  const members = new Set(before.map(({ cluster }) => cluster));
  const earlier = known.rolloutState.selected?.unread?.filter((cluster) => !isRead(cluster)) ?? [];
  const strangers = [...new Set([...earlier, ...unreadable])].filter((cluster) => !members.has(cluster));
  return strangers.length === 0 ? undefined : strangers.slice(0, keptUnreadable);
}

function byName(a: Member, b: Member): number {
  return compareText(a.cluster, b.cluster);
}

/**
 * A stage run takes a new snapshot when its stage is renamed, because a snapshot has the name. Slots and catch-ups have
 * their stage's name as well: until the job has given them the new one, no stage counts them.
 */
function renameStages(transaction: Transaction, renamed: ReadonlyMap<string, string>): void {
  for (const [before, name] of renamed) {
    const changing = transaction.rolloutState.stages.find((stage) => stage.name === before)?.changing ?? 0;
    transaction.editStage(before, (stage) => ({ ...stage, name, changing: 0, catchingUp: 0, failedCatchUps: 0 }));
    transaction.edit({ ledger: withNameOfStage(transaction.rolloutState, before, name) });
    transaction.countCatchUps({ changing });
    transaction.addJobs({ do: "rename", stage: before, to: name });
  }
}

/** Ends the stage run of a removed stage. Its slots are counted with those of no stage. */
function endRemovedStages(transaction: Transaction, names: ReadonlySet<string>): void {
  const removed = transaction.rolloutState.stages.filter(({ name }) => !names.has(name));
  for (const { updatingTo, changing } of removed) {
    const stageRun = updatingTo === undefined ? undefined : transaction.stageRun(updatingTo);
    if (stageRun !== undefined) transaction.supersede(stageRun, undefined);
    transaction.countCatchUps({ changing });
  }
}

/**
 * A stage that was removed and exists again has the slots that were given in it before, because no stage had them
 * meanwhile. The same holds for slots that could not be read then, and can be since.
 */
async function countReturnedSlots(transaction: Transaction, { table }: PlannerPorts): Promise<void> {
  const { known, rolloutState } = transaction;
  const before = new Set(known.rolloutState.stages.map(({ name }) => name));
  const isReadAgain = known.rolloutState.selected?.fleet === "";
  const stages = rolloutState.stages.filter(({ name }) => isReadAgain || !before.has(name));
  if (stages.length === 0 || rolloutState.catchUps.changing === 0) return;
  const { rows, unread } = await rowsAbout(ranges.slots(known.owner), table);
  for (const { name } of stages) {
    const own = rows.filter(({ stage }) => stage === name);
    const changing = own.filter(({ stageRun }) => stageRun !== undefined).length;
    transaction.editStage(name, (stage) => ({ ...stage, changing, catchingUp: own.length - changing }));
  }
  const others = rows.length + unread.length - changingOf(transaction.rolloutState);
  transaction.countCatchUps({ changing: others });
}

export interface Before {
  readonly known: Known;
  /** The members of the list before; those without a uid are only known to have been there. */
  readonly before: readonly Member[];
}
