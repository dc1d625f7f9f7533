import { nobodyChecked, readMembers } from "#functions/rollout/members.ts";
import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import { readClusters } from "#functions/rollout/read-clusters.ts";
import type { Known } from "#functions/rollout/read-owner.ts";
import { clockOf } from "#functions/rollout/settle-slots.ts";
import { Transaction } from "#functions/rollout/transaction.ts";
import { inParts } from "#shared/base/in-parts.ts";
import { type Member, relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import { lastStageRunOf } from "#shared/fleet/rollout/feed.ts";
import { isMoving } from "#shared/fleet/rollout/slots.ts";
import { refOf } from "#shared/fleet/rollout/stage-runs.ts";
import { later } from "#shared/fleet/rows/due.ts";
import { syncName } from "#shared/fleet/rows/keys.ts";
import type { Checking, Job } from "#shared/fleet/rows/rollout-rows.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { phaseTallies, worseOf } from "#shared/fleet/sync/tally.ts";

/** Clusters asked about at once. */
const pageSize = 25;

type State = keyof Checking["counts"];

/**
 * Takes a `reconcile` up: what failed of the legs under way and of the arrivals gets another turn, and every Sync is looked
 * at. It skips neither evidence nor bounds. @returns undefined when there is none.
 */
export function startReconcile(known: Known, ports: PlannerPorts): Transaction | undefined {
  const { rolloutState, row, stageRuns } = known;
  const asked = row.operations.reconcile?.number;
  if (asked === undefined || rolloutState.handledReconcile === asked || rolloutState.members === undefined)
    return undefined;
  if (row.operations.suspended !== undefined) return undefined;
  const transaction = new Transaction(known, ports.clock.now());
  // Of a stage that nothing goes through, those that what passed it left behind.
  const failed = rolloutState.stages.flatMap((stage): readonly Job[] => {
    const stageRun = lastStageRunOf(stage, stageRuns);
    return stageRun === undefined || stageRun.counts.Failed === 0 ? [] : [{ do: "retry", stageRun: refOf(stageRun) }];
  });
  const catchUps: readonly Job[] = rolloutState.catchUps.failed > 0 ? [{ do: "retry" }] : [];
  transaction.addJobs(...failed, ...catchUps, { do: "check", number: asked, at: 0 });
  transaction.edit({
    handledReconcile: asked,
    checking: { number: asked, since: transaction.at, most: 0, ...nobodyChecked },
  });
  return transaction;
}

/**
 * Who has been looked at since, cluster by cluster in their order: by the number that the worker says it has handled. What
 * the state index says may be from before.
 * @returns undefined when nothing new was seen of it.
 */
export async function followReconcile(known: Known, ports: PlannerPorts): Promise<Transaction | undefined> {
  const { rolloutState, row } = known;
  const { checking } = rolloutState;
  // What is on its way is counted when it has arrived.
  if (checking === undefined || rolloutState.jobs.length > 0 || isMoving(known)) return undefined;
  // A suspension spends no deadline: workers stand still meanwhile.
  if (row.operations.suspended !== undefined) return undefined;
  const transaction = new Transaction(known, ports.clock.now());
  const { at, now } = transaction;
  const [since = checking.since] = [checking.since, row.operations.resumed?.at ?? ""].sort().reverse();
  const isLate = later(since, clockOf(known, now).progressSeconds) <= at;
  const members = await readMembers(known, ports);
  const counts = { ...checking.counts };
  let { checked } = checking;
  for await (const state of statesSince(known, { members: members.slice(checked), number: checking.number }, ports)) {
    // Who waits longer than a cluster may take waits for nobody; the time begins anew with every one that is done.
    if (state === undefined && !isLate) break;
    counts[state ?? "changing"]++;
    checked++;
  }
  if (checked < members.length && checked === checking.checked) return undefined;
  const { failed, unreachable, changing } = counts;
  const progress = checked > checking.most ? { most: checked, since: at } : {};
  if (checked < members.length) transaction.edit({ checking: { ...checking, checked, counts, ...progress } });
  else transaction.edit({ checking: undefined, lately: { at, failed, unreachable, changing } });
  return transaction;
}

interface Asked {
  readonly members: readonly Member[];
  /** Of the `reconcile`. */
  readonly number: number;
}

/** Of each member what it is; undefined when it has not been looked at since, or is still changing because of it. */
async function* statesSince(
  known: Known,
  { members, number }: Asked,
  { table }: PlannerPorts,
): AsyncGenerator<State | undefined> {
  const { owner, row } = known;
  const templates = row.operations.deletion === undefined ? relationOf(row).templates : [];
  const desired = new Set(templates.map(({ name }) => syncName(owner, name)));
  for (const page of inParts(members, pageSize)) {
    const clusters = page.map(({ cluster }) => cluster);
    const found = await readClusters(known, { clusters, with: ["syncs"] }, table);
    for (const { syncs } of found.values()) {
      const isWhole = syncs.filter(({ name }) => desired.has(name)).length === desired.size;
      const states = syncs.map((sync) => stateSince(sync, number));
      const seen = states.filter((state) => state !== undefined);
      yield seen.length < states.length ? undefined : seen.reduce(worseOf, isWhole ? "ready" : "waiting");
    }
  }
}

function stateSince({ desired, observed, paused, reconcile = 0 }: SyncRow, asked: number): State | undefined {
  if (desired.action === "orphan") return "waiting";
  // It waits for the planner's word, not for a worker's look.
  if (paused !== undefined) return paused.freeze === undefined ? "failed" : "waiting";
  if (observed?.attempt !== desired.attempt) return undefined;
  const { phase, handledReconcile = 0 } = observed;
  // What nobody was asked to look at was not there yet: all that is seen of it was seen since.
  const isChecked = reconcile < asked || handledReconcile >= asked;
  const isOver = isChecked && phase !== "Applying" && phase !== "Verifying";
  // Who answers again waits for its turn.
  return isOver || phase === "Reachable" ? (phaseTallies[phase] ?? "ready") : undefined;
}
