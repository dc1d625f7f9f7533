import { readMembers } from "#functions/rollout/members.ts";
import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import type { Known } from "#functions/rollout/read-subject.ts";
import { sealLeg } from "#functions/rollout/seal-leg.ts";
import { Transaction } from "#functions/rollout/transaction.ts";
import { isCaughtUp, legOf } from "#shared/fleet/rollout/feed.ts";
import { isLeft, isStalled, mustVerify, refOf, verdictOf, withVerdict } from "#shared/fleet/rollout/legs.ts";
import { relationOf } from "#shared/fleet/rollout/plan.ts";
import type { LegRow } from "#shared/fleet/rows/rollout-rows.ts";

/** Says where each leg stands: one that has passed leaves its stage on its content. @returns undefined when all is said. */
export async function endLegs(known: Known, ports: PlannerPorts): Promise<Transaction | undefined> {
  const transaction = new Transaction(known, ports.clock.now());
  const { rollout } = relationOf(known.row);
  for (const [index, stage] of known.unit.stages.entries()) {
    const leg = legOf(stage, known.legs);
    if (leg === undefined) continue;
    const content = transaction.content(leg.content);
    const isAhead = stage.ahead === true && !isCaughtUp(transaction.unit, index);
    if (stage.ahead === true && !isAhead) transaction.editStage(stage.name, ({ ahead: _waited, ...kept }) => kept);
    // Its stage has another name now. One that stands still begins nothing by that.
    if (leg.stage !== stage.name && !isStalled(leg)) {
      await sealLeg(transaction, { stage: index, content }, ports);
      continue;
    }
    const farewell = content.plan.farewell !== undefined;
    const judged = { farewell, mustVerify: mustVerify(rollout, stage.name) };
    const verdict = verdictOf(leg, rollout, judged);
    // Clusters that joined instead of those that left may verify it.
    const areOthers = stage.members > 0 && leg.membersVersion < known.unit.membersVersion;
    if (verdict.phase === "NothingVerified" && isLeft(leg, judged) && areOthers) {
      await sealLeg(transaction, { stage: index, content }, ports);
      continue;
    }
    const next = withVerdict(leg, verdict, transaction.at);
    if (next === leg || (next.phase === "Passed" && isAhead)) continue;
    transaction.putLeg(next);
    if (next.phase === "Passed") await pass(transaction, { leg: next, name: stage.name }, ports);
    transaction.report(leg);
  }
  return transaction.hasChanged() ? transaction : undefined;
}

/** Its stage is on its content: who joined since it was sealed wants that, too. */
async function pass(
  transaction: Transaction,
  { leg, name }: { readonly leg: LegRow; readonly name: string },
  ports: PlannerPorts,
): Promise<void> {
  transaction.editStage(name, ({ moving: _moving, bar, ...stage }) => ({
    ...stage,
    ...(bar === undefined || leg.content > bar.upTo ? {} : { bar }),
    on: leg.content,
    passed: refOf(leg),
  }));
  const { former = 0, stages } = transaction.unit;
  if (stages.every(({ on = 0 }) => on >= former)) transaction.edit({ former: undefined });
  const { unit, known } = transaction;
  const { failed, away = 0 } = unit.arrivals;
  if (failed + away > 0) transaction.addJobs({ do: "clear", stage: name });
  if (leg.membersVersion < unit.membersVersion) {
    const members = await readMembers(known, ports);
    const late = members.filter(({ stage, since }) => stage === name && since > leg.membersVersion);
    const clusters = late.map(({ cluster }) => cluster);
    if (late.length > 0) transaction.addJobs({ do: "arrive", clusters: await ports.lists.store(clusters), at: 0 });
  }
}
