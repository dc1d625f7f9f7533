import type { CallWork } from "#functions/rollout/read/begin-call.ts";
import { nobodyChecked, type PlannerPorts, readMembers } from "#functions/rollout/read/planner-ports.ts";
import { readClusters } from "#functions/rollout/read/read-clusters.ts";
import { Transaction } from "#functions/rollout/write/transaction.ts";
import { defined } from "#shared/base/defined.ts";
import { inParts } from "#shared/base/in-parts.ts";
import { isEndedFromOutside, withoutGates } from "#shared/fleet/rollout/bake.ts";
import { type Member, relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import type { ClusterRows, Known } from "#shared/fleet/rollout/facts.ts";
import { hasSkips, newTargetActs } from "#shared/fleet/rollout/gate-acts.ts";
import { releasedPrunes } from "#shared/fleet/rollout/guarded-objects.ts";
import { clockOf } from "#shared/fleet/rollout/judge.ts";
import { lastStageRunOf, refOf, stageRunsIn } from "#shared/fleet/rollout/stage-runs.ts";
import { activityOf } from "#shared/fleet/rollout/timers.ts";
import { servingZone } from "#shared/fleet/rows/cluster-entry.ts";
import { later } from "#shared/fleet/rows/due.ts";
import { keys, syncName } from "#shared/fleet/rows/keys.ts";
import { type NamedClusters, namesSome } from "#shared/fleet/rows/named-clusters.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";
import type { Checking, Job } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import { type SyncRow, waitsForTurn } from "#shared/fleet/rows/sync-row.ts";
import { downFrom, downText } from "#shared/fleet/rows/zone-row.ts";
import { phaseTallies, worseOf } from "#shared/fleet/sync/tally.ts";

/** Clusters asked about at once. */
const pageSize = 25;

type State = keyof Checking["counts"];

/**
 * Starts a `reconcile`: failed targets of stage runs and failed catch-ups get another turn, and every Sync is checked.
 * It skips neither evidence nor bounds. @returns undefined when there is none.
 */
export function startReconcile(known: Known, _work: CallWork, ports: PlannerPorts): Transaction | undefined {
  const { rolloutState, row } = known;
  const asked = row.operations.reconcile?.number;
  if (asked === undefined || rolloutState.members === undefined) return undefined;
  const transaction = new Transaction(known, ports.clock.now());
  transaction.addJobs(...retryJobs(known), { do: "check", number: asked, at: 0 });
  bakeAnew(transaction);
  transaction.edit({
    handledReconcile: asked,
    checking: { number: asked, since: transaction.at, most: 0, ...nobodyChecked },
  });
  return transaction;
}

/**
 * Starts every `rollout retry` and `rollout skip`: targets and catch-ups of the clusters that it names get another turn,
 * or are taken out. Those whose prune was approved get another turn as well.
 */
export async function startTargetActs(
  known: Known,
  _work: CallWork,
  ports: PlannerPorts,
): Promise<Transaction | undefined> {
  const acts = newTargetActs(known.row.operations, known.rolloutState);
  const transaction = new Transaction(known, ports.clock.now());
  const { guarded: row, rolloutState } = known;
  const released = releasedPrunes({ row, rolloutState, guard: rolloutState.guard, now: transaction.now });
  if (released?.catchingUp !== undefined) {
    const clusters = await ports.lists.store(released.catchingUp);
    transaction.addJobs({ do: "catchUp", clusters, at: 0 });
    transaction.edit({ guard: released.guard });
    return transaction;
  }
  if (released !== undefined) {
    const { guard, clusters } = released;
    const jobs = retryJobs(known);
    transaction.addJobs(
      ...(clusters?.flatMap((cluster) => jobs.map((job) => ({ ...job, only: { cluster } }))) ?? jobs),
    );
    transaction.edit({ guard });
    return transaction;
  }
  if (acts.length === 0) return undefined;
  transaction.addJobs(
    ...acts.flatMap((act): readonly Job[] => {
      const only = defined({ cluster: act.cluster, clusters: act.clusters });
      if (act.verb === "skip") return skipJobs(known, only);
      return retryJobs(known, namesSome(act) ? { takenOut: true } : {}).map((job) => ({ ...job, only }));
    }),
  );
  if (acts.some((act) => act.verb === "retry" && !namesSome(act))) bakeAnew(transaction);
  transaction.edit({ handledAct: acts.at(-1)?.number });
  return transaction;
}

/**
 * Targets that have a row are taken out by a job; those that wait, at their turn; those with a slot, when it is
 * settled.
 */
function skipJobs({ rolloutState, stageRuns, row }: Known, only: NamedClusters): readonly Job[] {
  return stageRunsIn(rolloutState, stageRuns).flatMap((stageRun): readonly Job[] => {
    const { Failed, Unreachable } = stageRun.counts;
    if (Failed + Unreachable === 0 || !hasSkips(row.operations, stageRun, rolloutState)) return [];
    return [{ do: "skip", stageRun: refOf(stageRun), only }];
  });
}

/** Gates that an alarm or a check has ended begin anew. */
function bakeAnew(transaction: Transaction): void {
  const { rolloutState, stageRuns } = transaction.known;
  const ended = stageRunsIn(rolloutState, stageRuns).filter(isEndedFromOutside);
  for (const stageRun of ended) transaction.putStageRun(withoutGates(stageRun));
}

/**
 * In a stage without a stage run, the failed targets are those that the last one left behind.
 * @param also.takenOut - targets that people took out get another turn as well.
 */
function retryJobs(
  { rolloutState, stageRuns }: Known,
  also: Pick<Extract<Job, { do: "retry" }>, "takenOut"> = {},
): readonly Extract<Job, { do: "retry" }>[] {
  const ofStages = rolloutState.stages.flatMap((stage): readonly Extract<Job, { do: "retry" }>[] => {
    const stageRun = lastStageRunOf(stage, stageRuns);
    const isAny =
      stageRun !== undefined &&
      (stageRun.counts.Failed > 0 || (also.takenOut === true && stageRun.takenOut !== undefined));
    return isAny ? [{ do: "retry", stageRun: refOf(stageRun), ...also }] : [];
  });
  return [...ofStages, ...(rolloutState.catchUps.failed > 0 ? [{ do: "retry" } as const] : [])];
}

/**
 * Counts the clusters that have been checked since, in their order, by the number that their worker reports as handled.
 * The state index may be older.
 * @returns undefined when nothing new was seen.
 */
export async function followReconcile(
  known: Known,
  _work: CallWork,
  ports: PlannerPorts,
): Promise<Transaction | undefined> {
  const { rolloutState, row } = known;
  const { checking } = rolloutState;
  // Work in progress is counted when it has ended.
  if (checking === undefined || rolloutState.jobs.length > 0 || activityOf(known) === "moving") return undefined;
  const transaction = new Transaction(known, ports.clock.now());
  const { at, now } = transaction;
  const [since = checking.since] = [checking.since, row.operations.resumed?.at ?? ""].sort().reverse();
  const isLate = later(since, clockOf(known, now).progressSeconds) <= at;
  const members = await readMembers(known, ports);
  const counts = { ...checking.counts };
  const zones = new Set(checking.zones);
  const downZoneOf = downZones(known, now, ports);
  let { checked } = checking;
  const left = { members: members.slice(checked), number: checking.number };
  for await (const { fleet, state } of statesSince(known, left, ports)) {
    // A check that takes longer than a cluster may take ends; the time begins again with every cluster that is done.
    if (state === undefined && !isLate) break;
    const zone = state === undefined ? await downZoneOf(fleet) : undefined;
    if (zone !== undefined) zones.add(zone);
    counts[state ?? (zone === undefined ? "changing" : "unreachable")]++;
    checked++;
  }
  const unreached = zones.size === 0 ? {} : { zones: [...zones] };
  if (checked < members.length && checked === checking.checked) return undefined;
  const { failed, unreachable, changing } = counts;
  const progress = checked > checking.most ? { most: checked, since: at } : {};
  if (checked < members.length)
    transaction.edit({ checking: { ...checking, checked, counts, ...progress, ...unreached } });
  else transaction.edit({ checking: undefined, lately: { at, failed, unreachable, changing, ...unreached } });
  return transaction;
}

/** For a cluster that was not checked since the request: its zone in words, when no worker of that has run since. */
function downZones({ row }: Known, now: Date, ports: PlannerPorts) {
  const { table, zones = new Set() } = ports;
  const texts = new Map<string, Promise<string | undefined>>();
  const { at: since = now.toISOString() } = row.operations.reconcile ?? {};
  const seconds = clockOf({ row }, now).progressSeconds;
  const textOf = async (zone: string) => {
    const [found] = await table.getMany([keys.zone(zone)], { newer: "kept" });
    if (found !== undefined && isNewer(found)) return undefined;
    return downFrom(found, { since, seconds }) > now.toISOString() ? undefined : downText(zone, found);
  };
  return async (entry: FleetRow | undefined): Promise<string | undefined> => {
    if (zones.size === 0 || entry === undefined) return undefined;
    const zone = servingZone(entry, ports);
    const text = texts.get(zone) ?? textOf(zone);
    texts.set(zone, text);
    return text;
  };
}

interface Asked {
  readonly members: readonly Member[];
  /** Number of the `reconcile`. */
  readonly number: number;
}

/** Each member's entry, and its state; undefined when it has not been checked since, or is still changing because of that. */
async function* statesSince(
  known: Known,
  { members, number }: Asked,
  { table }: PlannerPorts,
): AsyncGenerator<Pick<ClusterRows, "fleet"> & { readonly state: State | undefined }> {
  const { owner, row } = known;
  const templates = row.operations.deletion === undefined ? relationOf(row).templates : [];
  const desired = new Set(templates.map(({ name }) => syncName(owner, name)));
  for (const page of inParts(members, pageSize)) {
    const clusters = page.map(({ cluster }) => cluster);
    const found = await readClusters(known, { clusters, with: ["syncs"] }, table);
    for (const { fleet, syncs } of found.values()) {
      const isWhole = syncs.filter(({ name }) => desired.has(name)).length === desired.size;
      const states = syncs.map((sync) => stateSince(sync, number));
      const seen = states.filter((state) => state !== undefined);
      const state = seen.length < states.length ? undefined : seen.reduce(worseOf, isWhole ? "ready" : "waiting");
      yield { fleet, state };
    }
  }
}

function stateSince({ desired, observed, paused, reconcile = 0 }: SyncRow, asked: number): State | undefined {
  if (desired.action === "orphan") return "waiting";
  if (paused?.zone !== undefined) return "unreachable";
  // It waits for the planner, not for a worker's check.
  if (paused !== undefined) return waitsForTurn(paused) ? "waiting" : "failed";
  if (observed?.attempt !== desired.attempt) return undefined;
  const { phase, handledReconcile = 0 } = observed;
  // A Sync that nobody was asked to check did not exist yet: everything seen of it is newer.
  const isChecked = reconcile < asked || handledReconcile >= asked;
  const isOver = isChecked && phase !== "Applying" && phase !== "Verifying";
  // A cluster that answers again waits for its turn.
  return isOver || phase === "Reachable" ? (phaseTallies[phase] ?? "ready") : undefined;
}
