import type { CallWork } from "#functions/rollout/read/begin-call.ts";
import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { nextRollout } from "#functions/rollout/write/next-rollout.ts";
import { renewArtifacts, startStageRun } from "#functions/rollout/write/take-snapshot.ts";
import { renumber, Transaction } from "#functions/rollout/write/transaction.ts";
import { defined } from "#shared/base/defined.ts";
import { advanceAll } from "#shared/fleet/rollout/advance.ts";
import { describeRevisions, identityNow, relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import { withEarlierArtifacts } from "#shared/fleet/rollout/earlier-artifacts.ts";
import type { Known } from "#shared/fleet/rollout/facts.ts";
import { nextFeed } from "#shared/fleet/rollout/feed.ts";
import { afterPlan } from "#shared/fleet/rollout/guarded-templates.ts";
import { withDesired } from "#shared/fleet/rollout/ledger.ts";
import { barredIn, newestPlanned } from "#shared/fleet/rollout/order.ts";
import { likeRejected, withLike } from "#shared/fleet/rollout/rejection.ts";
import { holdInForce, mayStartUnder } from "#shared/fleet/rollout/rollout-hold.ts";
import { stageRunOf } from "#shared/fleet/rollout/stage-runs.ts";
import type { Plan, RolloutRow } from "#shared/fleet/rows/rollout-rows.ts";

/**
 * Starts the first stage run that may start: it takes a snapshot of the present members and their inputs. @returns
 * undefined when no stage takes anything.
 */
export async function startNextStageRun(
  known: Known,
  { round }: CallWork,
  ports: PlannerPorts,
): Promise<Transaction | undefined> {
  const { rolloutState, row, desired } = known;
  if (row.operations.refresh !== undefined && row.operations.refresh.number !== rolloutState.handledRefresh)
    return takeNewSnapshot(known, row.operations.refresh.number, ports);
  const identity = desired.ok ? identityNow(known, desired.plan) : undefined;
  const isNew = identity !== undefined && newestPlanned(rolloutState.ledger)?.identity !== identity;
  const feed = nextFeed(rolloutState, {
    runs: advanceAll(known, round),
    isNew,
    isNewRejected: desired.ok && likeRejected(rolloutState, desired.plan.planHash) !== undefined,
    supersede: relationOf(row).rollout.supersede,
    deletion: row.operations.deletion !== undefined,
    ...defined({ mayStart: mayStartUnder(holdInForce(row, ports.clock.now())) }),
  });
  if (feed === undefined) return undefined;
  const transaction = new Transaction(known, ports.clock.now());
  const rollout =
    feed.rollout === "newest"
      ? newRollout(transaction, { identity, plan: await storedPlan(known, ports) })
      : transaction.rollout(feed.rollout);
  if (feed.stage !== undefined) await startStageRun(transaction, { stage: feed.stage, rollout }, ports);
  return transaction;
}

/**
 * A `refresh`: every stage run in progress takes a new snapshot, with the present settings and members; stages that
 * have passed keep theirs.
 */
async function takeNewSnapshot(known: Known, asked: number, ports: PlannerPorts): Promise<Transaction> {
  const transaction = new Transaction(known, ports.clock.now());
  transaction.edit({ handledRefresh: asked });
  // A rollout that a removed stage had not passed goes through the present stages with a number of its own.
  if (barredIn(known.rolloutState) !== undefined) renumber(transaction);
  for (const [stage, named] of known.rolloutState.stages.entries()) {
    const stageRun = stageRunOf(named, known.stageRuns);
    if (stageRun !== undefined)
      await startStageRun(transaction, { stage, rollout: transaction.rollout(stageRun.rollout) }, ports);
  }
  return transaction;
}

/**
 * The desired plan, with artifacts that are stored once more: a Source that was not polled since, or that went back, may
 * have stored its own long ago. Templates whose files did not change keep the artifact that they are rendered from.
 */
async function storedPlan({ desired, rolloutState, rollouts }: Known, ports: PlannerPorts): Promise<Plan> {
  if (!desired.ok) throw new Error("there is nothing to plan");
  const before = rollouts.get(rolloutState.last)?.plan;
  const plan = withEarlierArtifacts(desired.plan, before);
  const lost = await renewArtifacts([{ plan }], ports);
  if (lost.size === 0) return plan;
  const stored = withEarlierArtifacts(desired.plan, before, lost);
  await renewArtifacts([{ plan: stored }], ports);
  return stored;
}

function newRollout(
  transaction: Transaction,
  { identity, plan }: { readonly identity: string | undefined; readonly plan: Plan },
): RolloutRow {
  const { rolloutState, row } = transaction.known;
  if (identity === undefined) throw new Error("there is nothing to plan");
  const before = transaction.known.rollouts.get(rolloutState.last);
  const revision = describeRevisions(plan);
  const { skipped } = withDesired(rolloutState, { identity, revision });
  const rollout = nextRollout(transaction, {
    identity,
    plan,
    revision,
    ...defined({ fromRevision: before?.revision, skipped }),
    trigger: triggerOf(plan, before, row.operations.recovered?.number),
  });
  transaction.putRollout(rollout);
  if (rolloutState.rejected !== undefined) transaction.edit({ rejected: withLike(rolloutState, rollout) });
  const templates = new Set([...rolloutState.templates, ...plan.templates.map(({ name }) => name)]);
  const guard = afterPlan(plan, { ...transaction.known, row: transaction.known.guarded, now: transaction.now });
  transaction.edit({ desired: undefined, skipped: undefined, templates: [...templates].sort(), guard });
  return rollout;
}

function triggerOf(plan: Plan, before: RolloutRow | undefined, recovered: number | undefined): RolloutRow["trigger"] {
  if (plan.deletion !== undefined) return "deletion";
  if (before?.plan.planHash !== plan.planHash) return "plan";
  return recovered === undefined ? "inputs" : "recover";
}
