import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import type { Known } from "#functions/rollout/read-subject.ts";
import { stageNow } from "#functions/rollout/stage-now.ts";
import { Transaction } from "#functions/rollout/transaction.ts";
import { readSealed } from "#shared/adapters/sealed-targets.ts";
import { defined } from "#shared/base/defined.ts";
import { digestOf } from "#shared/base/digest.ts";
import { legOf } from "#shared/fleet/rollout/feed.ts";
import { frozenIn } from "#shared/fleet/rollout/legs.ts";
import { freezeOver, isInForce } from "#shared/fleet/rows/brake-row.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { LegRow } from "#shared/fleet/rows/rollout-rows.ts";

/** Equal as long as those whom a freeze holds can be no others. */
export function frozenAs({ known, now }: Pick<Transaction, "known" | "now">): string {
  return digestOf([known.brake.freezes.filter((freeze) => isInForce(freeze, now)), known.unit.membersVersion]);
}

/**
 * A freeze may hold thousands, who are not read at each look: when freezes, or the members, are others, the labels of all of
 * them are, and those who are let go have their turn.
 */
export async function letThaw(known: Known, ports: PlannerPorts): Promise<Transaction | undefined> {
  const transaction = new Transaction(known, ports.clock.now());
  const as = frozenAs(transaction);
  for (const stage of known.unit.stages) {
    const leg = legOf(stage, known.legs);
    if (leg?.frozen !== undefined && leg.frozen.as !== as)
      transaction.putLeg(await thawed(transaction, { leg, as }, ports));
  }
  return transaction.hasChanged() ? transaction : undefined;
}

async function thawed(
  { known, now }: Transaction,
  { leg, as }: { readonly leg: LegRow; readonly as: string },
  ports: PlannerPorts,
): Promise<LegRow> {
  const { frozen: _frozen, ...kept } = leg;
  const sealed = await readSealed(leg, frozenIn(leg), ports.lists);
  const clusters = [...sealed.values()].map(({ cluster }) => keys.fleet(cluster));
  const rows = await ports.table.getMany(clusters, { newer: "kept" });
  const own = rows.filter((row) => row.type === "Fleet").filter((row) => stageNow(known, row)?.name === leg.stage);
  const freezes = new Map(own.map(({ name, labels }) => [name, freezeOver(known.brake, labels, now)?.name]));
  const held = Map.groupBy(sealed.keys(), (order) => freezes.get(sealed.get(order)?.cluster ?? ""));
  const returned = [...leg.returned, ...(held.get(undefined) ?? [])];
  const by = Object.fromEntries([...held].flatMap(([name, orders]) => (name === undefined ? [] : [[name, orders]])));
  return { ...kept, returned, ...defined({ frozen: Object.keys(by).length === 0 ? undefined : { as, by } }) };
}
