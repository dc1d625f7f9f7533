import { type CallWork, isOver } from "#functions/rollout/read/begin-call.ts";
import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { catchUpQueue } from "#functions/rollout/steps/fill/fill-catch-ups.ts";
import { targetQueue } from "#functions/rollout/steps/fill/fill-stage-run.ts";
import { fillFrom } from "#functions/rollout/steps/fill/take-turns.ts";
import { Transaction } from "#functions/rollout/write/transaction.ts";
import { readSnapshot } from "#shared/adapters/stored-list.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import { type Known, stageNow } from "#shared/fleet/rollout/facts.ts";
import { skipOf } from "#shared/fleet/rollout/gate-acts.ts";
import { frozenAs, frozenIn, thawHold, waitsForThaw } from "#shared/fleet/rollout/holding.ts";
import { moversOf, servedNext, turnsOf } from "#shared/fleet/rollout/slots.ts";
import { stageRunOf } from "#shared/fleet/rollout/stage-runs.ts";
import { freezeOfAll } from "#shared/fleet/rows/freezes-row.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";
import type { Hold, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";

/** Gives free slots to stage runs and catch-ups, in their turns. @returns undefined when none of them can get one. */
export async function fillSlots(known: Known, work: CallWork, ports: PlannerPorts): Promise<Transaction | undefined> {
  // All slots have been checked, and stages have taken what that lets in.
  work.isFed = true;
  const now = ports.clock.now();
  const { rolloutState, row } = known;
  const isGoing = row.operations.deletion !== undefined;
  if (row.operations.suspended !== undefined && !isGoing) return undefined;
  if (freezeOfAll(known.freezeState, now) !== undefined) return undefined;
  const thawed = await letThaw(known, ports);
  if (thawed !== undefined) return thawed;
  const { rollout } = relationOf(row);
  const movers = moversOf({ rolloutState, stageRuns: known.stageRuns, rollout, isGoing });
  for (const { mover, slots } of turnsOf(rolloutState, movers, rollout)) {
    const transaction = new Transaction(known, now);
    const filling = { work, slots };
    const { stageRun } = mover;
    if (stageRun === undefined)
      await fillFrom(transaction, { ...filling, queue: catchUpQueue(transaction, filling, ports) }, ports);
    else {
      const queue = targetQueue(transaction, { ...filling, stageRun }, ports);
      await fillFrom(transaction, { ...filling, queue }, ports);
    }
    if (transaction.hasChanged()) transaction.edit({ served: servedNext(rolloutState, mover) });
    else if (transaction.messages.length === 0 && !isOver(work, ports)) continue;
    return transaction;
  }
  return undefined;
}

/**
 * A freeze or a closed window may cover thousands of clusters, which are not read at each check: when the freezes or the
 * members change, or a window opens or closes, the labels of all of them are read, and released clusters have their turn.
 */
async function letThaw(known: Known, ports: PlannerPorts): Promise<Transaction | undefined> {
  const transaction = new Transaction(known, ports.clock.now());
  const as = frozenAs(transaction);
  for (const stage of known.rolloutState.stages) {
    const stageRun = stageRunOf(stage, known.stageRuns);
    if (stageRun?.frozenAs !== undefined && stageRun.frozenAs !== as)
      transaction.putStageRun(await thawed(transaction, { stageRun, as }, ports));
  }
  return transaction.hasChanged() ? transaction : undefined;
}

async function thawed(
  { known, now }: Transaction,
  { stageRun, as }: { readonly stageRun: StageRunRow; readonly as: string },
  ports: PlannerPorts,
): Promise<StageRunRow> {
  const { frozenAs: _frozen, ...kept } = stageRun;
  const snapshot = await readSnapshot(stageRun, frozenIn(stageRun), ports.lists);
  const clusters = [...snapshot.values()].map(({ cluster }) => keys.fleet(cluster));
  const rows = await ports.table.getMany(clusters, { newer: "kept" });
  const own = rows.filter((row) => row.type === "Fleet").filter((row) => stageNow(known, row)?.name === stageRun.stage);
  const facts = { ...known, rollback: stageRun.rollback };
  const isSkipped = (cluster: FleetRow) => skipOf(known.row.operations, stageRun, { cluster, ...known }) !== undefined;
  // A skipped target is taken out at its turn, whatever holds it back.
  const stillHeld = new Map(own.map((one) => [one.name, isSkipped(one) ? undefined : thawHold(facts, one, now)]));
  const holdOn = (order = -1) => stillHeld.get(snapshot.get(order)?.cluster ?? "");
  const groups = Map.groupBy(snapshot.keys(), (order) => {
    const hold = holdOn(order);
    return hold && `${hold.cause} ${hold.name}`;
  });
  const returned = [...stageRun.returned, ...(groups.get(undefined) ?? [])];
  const frozen = [...groups.values()].flatMap((clusters): readonly Hold[] => {
    const hold = holdOn(clusters[0]);
    return hold === undefined ? [] : [{ ...hold, clusters }];
  });
  const others = stageRun.holds.filter((hold) => !waitsForThaw(hold));
  return { ...kept, returned, holds: [...others, ...frozen], ...(frozen.length === 0 ? {} : { frozenAs: as }) };
}
