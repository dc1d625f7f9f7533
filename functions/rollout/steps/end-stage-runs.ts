import type { CallWork } from "#functions/rollout/read/begin-call.ts";
import { type PlannerPorts, readMembers } from "#functions/rollout/read/planner-ports.ts";
import { startStageRun } from "#functions/rollout/write/take-snapshot.ts";
import { Transaction } from "#functions/rollout/write/transaction.ts";
import { readSnapshot } from "#shared/adapters/stored-list.ts";
import { advance, isLeft, type StageRunFacts, stageRunFacts } from "#shared/fleet/rollout/advance.ts";
import { afterApproval } from "#shared/fleet/rollout/approval.ts";
import { bakeFrom, bakeGate, bakeOf, withoutGates } from "#shared/fleet/rollout/bake.ts";
import { afterCheck, checkOf } from "#shared/fleet/rollout/check-gate.ts";
import type { Known } from "#shared/fleet/rollout/facts.ts";
import { heldIn } from "#shared/fleet/rollout/holding.ts";
import { withPassed } from "#shared/fleet/rollout/order.ts";
import { isStalled, refOf, stageRunOf, withVerdict } from "#shared/fleet/rollout/stage-runs.ts";
import { cordonOf, cordonText } from "#shared/fleet/rows/cordons-row.ts";
import type { StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";

/**
 * Computes the phase of each stage run. One that has passed makes its rollout the stage's current one. @returns
 * undefined when no phase changes.
 */
export async function endStageRuns(
  known: Known,
  _work: CallWork,
  ports: PlannerPorts,
): Promise<Transaction | undefined> {
  const transaction = new Transaction(known, ports.clock.now());
  for (const [index, stage] of known.rolloutState.stages.entries()) {
    const found = stageRunOf(stage, known.stageRuns);
    if (found === undefined) continue;
    const given = { approvals: known.row.operations.approvals ?? [], at: transaction.at };
    const stageRun = afterCheck(afterApproval(found, given), given);
    const rollout = transaction.rollout(stageRun.rollout);
    const facts = stageRunFacts({ ...known, rolloutState: transaction.rolloutState }, stageRun);
    if (stage.ahead === true && facts.isAhead !== true)
      transaction.editStage(stage.name, ({ ahead: _waited, ...kept }) => kept);
    // Its stage was renamed: a run in progress needs a snapshot with the new name. One that stands still stays as it is.
    if (stageRun.stage !== stage.name && !isStalled(stageRun)) {
      await startStageRun(transaction, { stage: index, rollout }, ports);
      continue;
    }
    const advanced = advance(stageRun, facts);
    const begun = advanced.phase === "Baking" ? afterBegin(stageRun, facts, transaction) : undefined;
    if (begun !== undefined) {
      transaction.putStageRun(withVerdict(begun, advance(begun, facts), transaction.at));
      transaction.report(stageRun);
      continue;
    }
    // Clusters that joined in place of those that left may verify it.
    const areOthers = stage.members > 0 && stageRun.membersVersion < known.rolloutState.membersVersion;
    if (advanced.phase === "NothingVerified" && isLeft(stageRun, facts) && areOthers) {
      await startStageRun(transaction, { stage: index, rollout }, ports);
      continue;
    }
    const next = withVerdict(afterFailedBake(stageRun, advanced), advanced, transaction.at);
    if (next === found) continue;
    transaction.putStageRun(next);
    if (next.phase === "Passed") await pass(transaction, { stageRun: next, name: stage.name }, ports);
    transaction.report(stageRun);
  }
  return transaction.hasChanged() ? transaction : undefined;
}

/** The stage run whose bake begins, or whose check is asked; undefined when its gates have begun before. */
function afterBegin(
  stageRun: StageRunRow,
  { bakeClock }: Pick<StageRunFacts, "bakeClock">,
  { now, at }: Pick<Transaction, "now" | "at">,
): StageRunRow | undefined {
  if (bakeOf(stageRun) !== undefined && stageRun.bake === undefined)
    return bakeClock && { ...stageRun, bake: bakeFrom(bakeClock, now) };
  const isBaked = (bakeGate(stageRun, bakeClock)?.state ?? "passed") === "passed";
  if (!isBaked || checkOf(stageRun) === undefined || stageRun.check !== undefined) return undefined;
  return { ...stageRun, check: { since: at } };
}

/** When failed clusters get another turn after a bake or a check, these begin anew. */
function afterFailedBake(stageRun: StageRunRow, { phase }: Pick<StageRunRow, "phase">): StageRunRow {
  return stageRun.phase === "GateFailed" && phase === "Updating" ? withoutGates(stageRun) : stageRun;
}

/** Makes its rollout the stage's current one, which clusters that joined after the snapshot get as well. */
async function pass(
  transaction: Transaction,
  { stageRun, name }: { readonly stageRun: StageRunRow; readonly name: string },
  ports: PlannerPorts,
): Promise<void> {
  const isGated = stageRun.gates?.before !== undefined;
  const passed = {
    ...refOf(stageRun),
    isUnasked: isGated && stageRun.size === 0,
    isApproved: isGated && stageRun.size > 0,
  };
  transaction.edit({ former: undefined, ...withPassed(transaction.rolloutState, name, passed) });
  const { rolloutState, known } = transaction;
  const { failed, away = 0 } = rolloutState.catchUps;
  const cordoned = await leaveCordoned(transaction, stageRun, ports);
  if (failed + away > 0) transaction.addJobs({ do: "clear", stage: name });
  const members = stageRun.membersVersion < rolloutState.membersVersion ? await readMembers(known, ports) : [];
  const late = members.filter(({ stage, since }) => stage === name && since > stageRun.membersVersion);
  const clusters = [...late.map(({ cluster }) => cluster), ...cordoned];
  if (clusters.length > 0) transaction.addJobs({ do: "catchUp", clusters: await ports.lists.store(clusters), at: 0 });
}

/** Cordoned targets leave the stage run, and catch up with its rollout later. @returns the names of their clusters. */
async function leaveCordoned(
  transaction: Transaction,
  stageRun: StageRunRow,
  { lists }: PlannerPorts,
): Promise<readonly string[]> {
  const orders = heldIn(stageRun, "cordon");
  if (orders.length === 0) return [];
  const snapshot = [...(await readSnapshot(stageRun, orders, lists))];
  transaction.putStageRun({ ...stageRun, holds: stageRun.holds.filter(({ cause }) => cause !== "cordon") });
  for (const [order, { cluster }] of snapshot) {
    const cordon = cordonOf(transaction.known.cordons, cluster, transaction.now);
    const why = cordon === undefined ? "was cordoned" : cordonText(cordon);
    const reason = `${why}; it catches up after the cordon`;
    transaction.record(stageRun, { cluster, order }, "Waiting", { state: "Skipped", reason });
  }
  return snapshot.map(([, { cluster }]) => cluster);
}
