import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { Transaction } from "#functions/rollout/write/transaction.ts";
import { readSnapshot } from "#shared/adapters/snapshot-targets.ts";
import { type Known, stageNow } from "#shared/fleet/rollout/facts.ts";
import { frozenAs } from "#shared/fleet/rollout/holding.ts";
import { freezeHold, frozenIn, waitsForThaw } from "#shared/fleet/rollout/holds.ts";
import { stageRunOf } from "#shared/fleet/rollout/stage-runs.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { Hold, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";

/**
 * A freeze may cover thousands of clusters, which are not read at each check: when the freezes or the members change,
 * the labels of all of them are read, and released clusters have their turn.
 */
export async function letThaw(known: Known, ports: PlannerPorts): Promise<Transaction | undefined> {
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
  const freezes = new Map(own.map(({ name, labels }) => [name, freezeHold(known.freezeState, labels, now)]));
  const holdOn = (order = -1) => freezes.get(snapshot.get(order)?.cluster ?? "");
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
