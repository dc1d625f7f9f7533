import { letGo } from "#functions/rollout/let-go.ts";
import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import { seeClusters } from "#functions/rollout/read-clusters.ts";
import { startOver } from "#functions/rollout/retry.ts";
import { sealedInPage, sealLeg } from "#functions/rollout/seal-leg.ts";
import { isSelected, stageNow } from "#functions/rollout/stage-now.ts";
import type { Transaction } from "#functions/rollout/transaction.ts";
import { withEffectiveValues } from "#shared/adapters/cluster-values.ts";
import { legOf } from "#shared/fleet/rollout/feed.ts";
import { isSameLeg, isStalled } from "#shared/fleet/rollout/legs.ts";
import { sealedTarget } from "#shared/fleet/rollout/plan.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";
import type { LegRow, SealedTarget } from "#shared/fleet/rows/rollout-rows.ts";

/**
 * Clusters that came to a stage get what it is on. Where nothing has passed yet they go with the leg that is under way, and
 * else wait for the next. @returns how many had their turn.
 */
export async function arrivePage(
  transaction: Transaction,
  page: readonly string[],
  ports: PlannerPorts,
): Promise<number> {
  const { known } = transaction;
  const found = await seeClusters(transaction, { clusters: page, with: ["arrivals", "targets", "left"] }, ports.table);
  const late = new Map<LegRow, FleetRow[]>();
  let done = 0;
  for (const cluster of page) {
    const rows = found.get(cluster);
    if (transaction.room() < 4 + (rows === undefined ? 0 : rows.targets.length + rows.left.length)) break;
    done++;
    const fleet = rows?.fleet;
    if (rows === undefined || fleet === undefined) continue;
    await letGo(transaction, rows.targets, ports);
    if (isSelected(known, fleet)) startOver(transaction, rows);
    const stage = stageNow(known, fleet);
    const leg = stage && legOf(stage, known.legs);
    // Also one that is in no stage for the moment: the next list says where it is, or that it left.
    if (stage === undefined || stage.on !== undefined) transaction.putArrival(cluster, "waiting", { why: "joined" });
    else if (leg !== undefined) late.set(leg, [...(late.get(leg) ?? []), fleet]);
  }
  for (const [leg, fleet] of late) await append(transaction, { leg, fleet }, ports);
  return done;
}

/** The one exception of the seal: until a stage has passed anything, who comes to it goes with its leg. */
async function append(
  transaction: Transaction,
  { leg, fleet }: { readonly leg: LegRow; readonly fleet: readonly FleetRow[] },
  ports: PlannerPorts,
): Promise<void> {
  const { lists, table } = ports;
  const content = transaction.content(leg.content);
  const pages = await Promise.all(leg.pages.map(({ key }) => lists.read<SealedTarget>(key)));
  const known = new Map(pages.flat().map(({ cluster, uid }) => [cluster, uid]));
  // A leg has one target of a name: with those who are registered anew it begins anew, unless it stands still.
  const isAnew = fleet.some(({ name, uid }) => known.has(name) && known.get(name) !== uid);
  const stage = transaction.unit.stages.findIndex(({ moving }) => isSameLeg(moving, leg));
  if (isAnew && !isStalled(leg)) return sealLeg(transaction, { stage, content }, ports);
  const others = await withEffectiveValues(
    fleet.filter(({ name }) => !known.has(name)),
    table,
  );
  const fresh = others.map((row) => sealedTarget({ ...row, cluster: row.name }, content.plan));
  if (fresh.length === 0) return;
  // Most come one by one: were each a page of its own, the row would grow with them.
  const last = pages.at(-1) ?? [];
  const isFull = last.length >= sealedInPage;
  const key = await lists.store(isFull ? fresh : [...last, ...fresh]);
  const first = leg.size - (isFull ? 0 : last.length);
  transaction.putLeg({
    ...leg,
    size: leg.size + fresh.length,
    pages: [...leg.pages.filter((page) => page.first < first), { key, first }],
    counts: { ...leg.counts, Waiting: leg.counts.Waiting + fresh.length },
  });
}
