import { readRenderings } from "#functions/rollout/decide.ts";
import type { Waiting } from "#functions/rollout/fill-leg.ts";
import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import type { Known } from "#functions/rollout/read-subject.ts";
import { bringUp } from "#functions/rollout/retry.ts";
import { Transaction } from "#functions/rollout/transaction.ts";
import { readSealed } from "#shared/adapters/sealed-targets.ts";
import { legKey } from "#shared/fleet/rollout/legs.ts";
import { keys } from "#shared/fleet/rows/keys.ts";

const pageSize = 40;

/** Targets that could not be rendered and could be by now: nothing was assigned to them, and they have another turn. */
export async function retryRendered(
  known: Known,
  asked: Waiting,
  ports: PlannerPorts,
): Promise<Transaction | undefined> {
  for (const stage of known.unit.stages) {
    const ref = stage.moving ?? stage.passed;
    const leg = ref === undefined ? undefined : known.legs.get(legKey(ref));
    const orders = (leg?.unrendered ?? [])
      .filter((order) => !asked.has(`unrendered ${leg && legKey(leg)} ${order}`))
      .slice(0, pageSize);
    if (leg === undefined || orders.length === 0) continue;
    for (const order of orders) asked.add(`unrendered ${legKey(leg)} ${order}`);
    const sealed = await readSealed(leg, orders, ports);
    const clusters = [...sealed.values()].map(({ cluster }) => cluster);
    const [renderings, found] = await Promise.all([
      readRenderings([...sealed.values()], ports.table),
      ports.table.getMany(
        clusters.map((cluster) => keys.target(known.subject, leg, cluster)),
        { newer: "kept" },
      ),
    ]);
    const targets = found.filter((row) => row.type === "Target");
    const transaction = new Transaction(known, ports.clock.now());
    const left: number[] = [];
    for (const [order, { cluster, inputs }] of sealed) {
      const target = targets.find((row) => row.cluster === cluster);
      const isDone = inputs.every((input) => "digest" in input && renderings.rows.get(input.digest)?.state === "Done");
      if (target === undefined || !isDone) continue;
      if (leg.phase === "Passed") left.push(order);
      else transaction.retry(target);
    }
    if (left.length > 0) {
      await bringUp(
        transaction,
        left.flatMap((order) => sealed.get(order)?.cluster ?? []),
        ports,
      );
      transaction.putLeg({ ...leg, unrendered: leg.unrendered.filter((order) => !left.includes(order)) });
    }
    if (transaction.hasChanged()) return transaction;
  }
  return undefined;
}
