import { targetsAt } from "#functions/rollout/clusters-by-state.ts";
import { withDesired } from "#functions/rollout/ledger.ts";
import { readMembers } from "#functions/rollout/members.ts";
import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import type { Known } from "#functions/rollout/read-owner.ts";
import { renewArtifacts } from "#functions/rollout/renew-owner-blobs.ts";
import { rowsAbout } from "#functions/rollout/rows-about.ts";
import type { Round } from "#functions/rollout/settle-slots.ts";
import { clustersWithSyncs } from "#functions/rollout/state-entries.ts";
import { Transaction } from "#functions/rollout/transaction.ts";
import { currentCorrelation } from "#shared/adapters/correlation.ts";
import { defined } from "#shared/base/defined.ts";
import { inParts } from "#shared/base/in-parts.ts";
import {
  describeRevisions,
  identityNow,
  type Member,
  relationOf,
  snapshotTarget,
} from "#shared/fleet/rollout/desired-plan.ts";
import { barredIn, nextFeed, stageRunOf, stageRunsIn } from "#shared/fleet/rollout/feed.ts";
import { changingOf } from "#shared/fleet/rollout/slots.ts";
import { noTargets, refOf, type StageRunVerdict, stageRunKey, verdictOf } from "#shared/fleet/rollout/stage-runs.ts";
import { keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { Plan, RolloutRow, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";

/** Targets in one blob: what a check of a stage run reads of its snapshot. */
export const snapshotPageSize = 1000;

/**
 * Starts the first stage run that may start: it takes a snapshot of the present members and their inputs. @returns
 * undefined when no stage takes anything.
 */
export async function startNextStageRun(
  known: Known,
  { stuck, doomed }: Pick<Round, "stuck" | "doomed">,
  ports: PlannerPorts,
): Promise<Transaction | undefined> {
  const { rolloutState, row, desired, stageRuns } = known;
  if (row.operations.suspended !== undefined && row.operations.deletion === undefined) return undefined;
  if (row.operations.refresh !== undefined && row.operations.refresh.number !== rolloutState.handledRefresh)
    return takeNewSnapshot(known, row.operations.refresh.number, ports);
  const identity = desired.ok ? identityNow(known, desired.plan) : undefined;
  const feed = nextFeed(rolloutState, {
    stageRuns,
    stuck,
    halting: new Set(endingAs("Halted", known, doomed).map(stageRunKey)),
    passing: new Set(
      endingAs("Passed", known, doomed)
        .filter(({ stage }) => stage !== rolloutState.stages.at(-1)?.name)
        .map(stageRunKey),
    ),
    isNew: identity !== undefined && rolloutState.ledger[0]?.identity !== identity,
    supersede: relationOf(row).rollout.supersede,
    deletion: row.operations.deletion !== undefined,
    resumedAt: row.operations.resumed?.at,
  });
  if (feed === undefined) return undefined;
  const transaction = new Transaction(known, ports.clock.now());
  const rollout = feed.rollout === "newest" ? newRollout(transaction, identity) : transaction.rollout(feed.rollout);
  // A Source that was not polled since, or that went back, may have stored it long ago.
  if (feed.rollout === "newest") await renewArtifacts([rollout], ports);
  await startStageRun(transaction, { stage: feed.stage, rollout }, ports);
  return transaction;
}

/** The stage runs that will have this verdict at the deadline of the attempts that cannot progress by themselves. */
function endingAs(
  phase: StageRunVerdict["phase"],
  { rolloutState, row, stageRuns }: Known,
  doomed: Round["doomed"],
): readonly StageRunRow[] {
  const { rollout } = relationOf(row);
  return stageRunsIn(rolloutState, stageRuns).filter((stageRun) => {
    const { all = 0, preexisting = 0 } = doomed.get(stageRunKey(stageRun)) ?? {};
    const { Assigned, Failed } = stageRun.counts;
    const counts = { ...stageRun.counts, Assigned: Assigned - all, Failed: Failed + all };
    const preexistingFailures = stageRun.preexistingFailures + preexisting;
    return all > 0 && verdictOf({ ...stageRun, counts, preexistingFailures }, rollout).phase === phase;
  });
}

/**
 * A `refresh`: every stage run in progress takes a new snapshot, with the present settings and members; stages that
 * have passed keep theirs.
 */
async function takeNewSnapshot(known: Known, asked: number, ports: PlannerPorts): Promise<Transaction> {
  const transaction = new Transaction(known, ports.clock.now());
  transaction.edit({ handledRefresh: asked });
  // A rollout that a removed stage had not passed goes through the present stages with a number of its own.
  if (barredIn(known.rolloutState) !== undefined)
    transaction.edit({ inputsVersion: known.rolloutState.inputsVersion + 1 });
  for (const [stage, named] of known.rolloutState.stages.entries()) {
    const stageRun = stageRunOf(named, known.stageRuns);
    if (stageRun !== undefined)
      await startStageRun(transaction, { stage, rollout: transaction.rollout(stageRun.rollout) }, ports);
  }
  return transaction;
}

function newRollout(transaction: Transaction, identity: string | undefined): RolloutRow {
  const { rolloutState, desired, owner, row } = transaction.known;
  if (!desired.ok || identity === undefined) throw new Error("there is nothing to plan");
  const { plan } = desired;
  const number = rolloutState.last + 1;
  const before = transaction.known.rollouts.get(rolloutState.last);
  const revision = describeRevisions(plan);
  const { skipped } = withDesired(rolloutState, { identity, revision });
  const rollout: RolloutRow = {
    ...keys.rollout(owner, number),
    type: "Rollout",
    schema: rowSchema,
    version: 1,
    owner,
    number,
    identity,
    plan,
    revision,
    ...defined({ fromRevision: before?.revision, correlationId: currentCorrelation(), skipped }),
    trigger: triggerOf(plan, before, row.operations.recovered?.number),
    createdAt: transaction.at,
  };
  transaction.putRollout(rollout);
  const templates = new Set([...rolloutState.templates, ...plan.templates.map(({ name }) => name)]);
  transaction.edit({ desired: undefined, skipped: undefined, templates: [...templates].sort() });
  return rollout;
}

function triggerOf(plan: Plan, before: RolloutRow | undefined, recovered: number | undefined): RolloutRow["trigger"] {
  if (plan.deletion !== undefined) return "deletion";
  if (before?.plan.planHash !== plan.planHash) return "plan";
  return recovered === undefined ? "inputs" : "recover";
}

/** Takes the snapshot of a rollout for a stage; the stage run in progress is superseded. */
export async function startStageRun(
  transaction: Transaction,
  { stage: index, rollout }: { readonly stage: number; readonly rollout: RolloutRow },
  ports: PlannerPorts,
): Promise<void> {
  const { known } = transaction;
  const stage = transaction.rolloutState.stages[index];
  if (stage === undefined) throw new Error(`there is no stage ${index}`);
  const old = stage.updatingTo && transaction.stageRun(stage.updatingTo);
  const members = await membersFor(transaction, { stage: stage.name, rollout }, ports);
  const holders = changingOf(transaction.rolloutState) === 0 ? [] : await holdersOf(known, ports);
  const before = old && (await standingIn(old, { rollout, known }, ports));
  const standings = new Map<string, Standing>([
    ...holders.map((cluster) => [cluster, "unhealthy"] as const),
    ...(before ?? []),
  ]);
  const groups = Map.groupBy(members, ({ cluster }) => standings.get(cluster) ?? "untouched");
  const { unhealthy = [], well = [], untouched = [] } = Object.fromEntries(groups);
  const ordered = [...unhealthy, ...well, ...untouched];
  const targets = ordered.map((member) => snapshotTarget(member, rollout.plan));
  const pages: { key: string; first: number }[] = [];
  for (const [at, page] of inParts(targets, snapshotPageSize).entries())
    pages.push({ key: await ports.lists.store(page), first: at * snapshotPageSize });
  const snapshot = transaction.rolloutState.snapshots + 1;
  const message = `stage ${stage.name} begins: ${ordered.length === 1 ? "1 cluster" : `${ordered.length} clusters`} to check`;
  const stageRun: StageRunRow = {
    ...keys.stageRun(known.owner, { rollout: rollout.number, stage: stage.name, snapshot }),
    type: "StageRun",
    schema: rowSchema,
    version: 0,
    owner: known.owner,
    rollout: rollout.number,
    stage: stage.name,
    snapshot,
    phase: "Updating",
    reason: "Updating",
    message,
    size: ordered.length,
    pages,
    membersVersion: transaction.rolloutState.membersVersion,
    next: 0,
    rendering: [],
    aside: [],
    returned: [],
    unrendered: [],
    ...(well.length === 0 ? {} : { verified: { from: unhealthy.length, to: unhealthy.length + well.length } }),
    counts: { ...noTargets, Waiting: ordered.length },
    preexistingFailures: 0,
    failures: [],
    away: [],
    // No cluster may have joined for what was requested then.
    ...defined({ retriedAt: old?.retriedAt, left: hasLost(old, rollout) }),
    startedAt: transaction.at,
    transitions: [{ at: transaction.at, phase: "Updating", reason: "Updating", message }],
  };
  if (old !== undefined) transaction.supersede(old, rollout.number);
  transaction.putStageRun(stageRun);
  transaction.edit({ snapshots: snapshot });
  const isAhead = stage.ahead === true && old?.rollout === rollout.number;
  transaction.editStage(stage.name, ({ ahead: _before, ...kept }) => ({
    ...kept,
    updatingTo: refOf(stageRun),
    ...(isAhead ? { ahead: true } : {}),
  }));
  transaction.report(stageRun);
}

/** Whether targets left before this rollout was verified in the stage: a new snapshot is no evidence. */
function hasLost(old: StageRunRow | undefined, { number }: RolloutRow): true | undefined {
  return old?.rollout === number && (old.left === true || old.counts.Skipped > 0) ? true : undefined;
}

/** A deletion concerns every cluster that has something of the owner: a cluster without a stage goes with the last. */
async function membersFor(
  { known, rolloutState }: Transaction,
  { stage, rollout }: { readonly stage: string; readonly rollout: RolloutRow },
  ports: PlannerPorts,
): Promise<readonly Member[]> {
  const members = await readMembers(known, ports);
  const own = members.filter((member) => member.stage === stage);
  const isLast = rolloutState.stages.at(-1)?.name === stage;
  if (rollout.plan.deletion === undefined || !isLast) return own;
  const placed = members.filter((member) => rolloutState.stages.some(({ name }) => name === member.stage));
  const clusters = await clustersWithSyncs(known.owner, ports.table);
  const others = [...clusters.difference(new Set(placed.map(({ cluster }) => cluster)))].sort();
  return [...own, ...others.map((cluster) => ({ cluster, uid: "", stage, labels: {}, values: {}, since: 0 }))];
}

type Standing = "unhealthy" | "well";

/**
 * Clusters with a slot, of any stage. They come first: the slots that they keep count in the stage's own bound before
 * another cluster gets a new one.
 */
async function holdersOf({ owner }: Known, { table }: PlannerPorts): Promise<readonly string[]> {
  const { rows } = await rowsAbout(ranges.slots(owner), table);
  return rows.map(({ cluster }) => cluster);
}

/**
 * Clusters with something of a stage run that has not passed come first. A new snapshot keeps the evidence of its
 * rollout: the clusters that were ready with it, also by a snapshot that checked none of them again.
 */
async function standingIn(
  stageRun: StageRunRow,
  { rollout, known }: { readonly rollout: RolloutRow; readonly known: Known },
  ports: PlannerPorts,
): Promise<ReadonlyMap<string, Standing>> {
  const { owner } = known;
  const { from, to } = stageRun.verified ?? { from: 0, to: 0 };
  const orders = Array.from({ length: to - from }, (_, index) => from + index);
  const [targets, verified] = await Promise.all([
    rowsAbout(ranges.targets(owner, stageRun), ports.table),
    targetsAt(stageRun, orders, ports),
  ]);
  const given = targets.rows.filter(({ attempts }) => Object.keys(attempts).length > 0);
  const touched = [...given.map(({ cluster }) => cluster), ...targets.unread];
  const succeeded = [...targets.rows.filter(({ state }) => state === "Succeeded"), ...verified];
  const well = stageRun.rollout === rollout.number ? succeeded.map(({ cluster }) => cluster) : [];
  return new Map<string, Standing>([
    ...touched.map((cluster) => [cluster, "unhealthy"] as const),
    ...well.map((cluster) => [cluster, "well"] as const),
  ]);
}
