import { readMembers } from "#functions/rollout/members.ts";
import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import { readClusters } from "#functions/rollout/read-clusters.ts";
import type { Known } from "#functions/rollout/read-owner.ts";
import { rowsAbout } from "#functions/rollout/rows-about.ts";
import { firstEntries, lagSeconds } from "#functions/rollout/state-entries.ts";
import { keptUnreadable } from "#functions/rollout/transaction.ts";
import { readSnapshot } from "#shared/adapters/snapshot-targets.ts";
import { unlessLost } from "#shared/base/errors.ts";
import { inParts } from "#shared/base/in-parts.ts";
import { isRenderFailure } from "#shared/fleet/rollout/assignments.ts";
import type { Member } from "#shared/fleet/rollout/desired-plan.ts";
import { lastStageRunOf } from "#shared/fleet/rollout/feed.ts";
import { namesShownInStatus } from "#shared/fleet/rollout/owner-status.ts";
import { membersOfAll } from "#shared/fleet/rollout/slots.ts";
import { frozenIn } from "#shared/fleet/rollout/stage-runs.ts";
import { later } from "#shared/fleet/rows/due.ts";
import { clusterOfKey, keys, ranges, stateIndex } from "#shared/fleet/rows/keys.ts";
import type { CatchUpRow, SnapshotTarget, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { type ClusterTallies, clusterCounts, indexTallies, type Tally, worseOf } from "#shared/fleet/sync/tally.ts";

/** By the index's words. */
const indexed = new Map(Object.entries(indexTallies).map(([phase, state]) => [stateIndex.word(phase), state]));

export interface ByState {
  readonly counts: ClusterTallies;
  /** The first of those that are not well, by name. */
  readonly failed: readonly string[];
  readonly unreachable: readonly string[];
  /** A catch-up ended so lately that the index may not say it yet, or a cluster is another than it says. */
  readonly isNews: boolean;
  /** The index has not heard yet of one that is not well. */
  readonly isBehind: boolean;
}

export interface SeenInCheck {
  readonly all: boolean;
  /** Of clusters whose rows were read. */
  readonly states: ReadonlyMap<string, Tally>;
}

/** What the index says of a cluster when it has heard of these rows. */
export function stateByRows(syncs: readonly Pick<SyncRow, "stateSk">[]): Tally {
  const words = syncs.map(({ stateSk = "" }) => stateIndex.parse(stateSk)?.state ?? "");
  return words.map((word) => indexed.get(word) ?? "ready").reduce(worseOf, "ready");
}

/** A look that is not about everybody reads so many Syncs of a state at most. */
const mostRead = 100;

/**
 * Counts of the members by their worst Sync. Only those that are not ready are read, from the state index: a moment behind,
 * put right by the next look. A catch-up that failed, or found no answer, within the index's lag counts as that.
 * So does what the look read of a cluster, better or worse.
 * @param look.all - it is a look at everybody. Any other reads a page of each state: of one with more, it goes by what was
 *   counted before, which the next look at everybody puts right.
 */
export async function clustersByState(known: Known, check: SeenInCheck, ports: PlannerPorts): Promise<ByState> {
  const { all, states } = check;
  const { owner, rolloutState, row } = known;
  const { table } = ports;
  const most = all ? undefined : mostRead;
  const [pages, catchUps, snapshot] = await Promise.all([
    Promise.all([...indexed.keys()].map((phase) => firstEntries(owner, table, { phase, most }))),
    catchUpsThatEnded(known, ports),
    unassigned(known, ports),
  ]);
  const worst = new Map<string, Tally>();
  const note = (cluster: string, state: Tally) => worst.set(cluster, worseOf(worst.get(cluster) ?? "ready", state));
  for (const { state, cluster } of pages.flat()) note(cluster, indexed.get(state) ?? "ready");
  const cut = pages.filter(({ length }) => length === most);
  const full = new Set(cut.flatMap(([first]) => (first === undefined ? [] : (indexed.get(first.state) ?? []))));
  // Of a state with more than a page nobody knows whether the index has heard of one of them.
  const isNews = (cluster: string, state: Tally) => (worst.get(cluster) ?? "ready") !== state && !full.has(state);
  const others = [...states].filter(([cluster, state]) => isNews(cluster, state));
  for (const [cluster, state] of others) worst.set(cluster, state);
  for await (const cluster of unreadable(known, ports)) note(cluster, "unreachable");
  for (const { cluster } of catchUps.failed) note(cluster, "failed");
  for (const { cluster } of catchUps.away) note(cluster, "unreachable");
  // Of the arrivals that wait only those are read that are counted already.
  const asked = rolloutState.catchUps.waiting === 0 ? [] : [...worst.keys()];
  const counted = await table.getMany(
    asked.map((cluster) => keys.catchUp(owner, "waiting", cluster)),
    { newer: "kept" },
  );
  for (const row of counted) note(clusterOfKey(row), "waiting");
  for (const [cluster, state] of snapshot) note(cluster, state);
  const counts = { ready: 0, drifted: 0, changing: 0, failed: 0, unreachable: 0, waiting: 0 };
  for (const state of worst.values()) counts[state]++;
  const before = row.status.clusters;
  // Nobody has counted them yet.
  if ([...full].some((state) => (before?.[state] ?? 0) < counts[state]))
    return clustersByState(known, { ...check, all: true }, ports);
  for (const state of full) counts[state] = before?.[state] ?? 0;
  const waiting = counts.waiting + rolloutState.catchUps.waiting - counted.length;
  const named = (state: Tally) =>
    [...worst]
      .flatMap(([cluster, its]) => (its === state ? cluster : []))
      .sort()
      .slice(0, namesShownInStatus);
  return {
    counts: clusterCounts(membersOfAll(rolloutState), { ...counts, waiting }),
    failed: named("failed"),
    unreachable: named("unreachable"),
    isNews: catchUps.isNews || others.length > 0,
    isBehind: others.some(([, state]) => state !== "ready"),
  };
}

/**
 * Clusters whose catch-up ended so lately that the index may not say it yet; and those that nothing was assigned to, as it
 * could not be rendered. After its lag the index says the others, and whether they are ready by themselves since.
 */
async function catchUpsThatEnded(
  { owner, rolloutState }: Known,
  { table, clock }: PlannerPorts,
): Promise<Record<"failed" | "away", readonly CatchUpRow[]> & Pick<ByState, "isNews">> {
  const { failed, away = 0 } = rolloutState.catchUps;
  const now = clock.now().toISOString();
  const isWithinLag = (at: string) => later(at, lagSeconds) > now;
  // A version before this one did not note it.
  const mayBeNews = isWithinLag(rolloutState.catchUpEndedAt ?? now);
  const assigned = rolloutState.stages.reduce((sum, { failedCatchUps }) => sum + failedCatchUps, 0);
  const read = async (state: "failed" | "away", isRead: boolean) =>
    isRead ? (await rowsAbout(ranges.catchUps(owner, state), table)).rows : [];
  const [ofFailed, ofAway] = await Promise.all([
    read("failed", failed > 0 && (mayBeNews || failed > assigned)),
    read("away", away > 0 && mayBeNews),
  ]);
  const isRecent = ({ since }: CatchUpRow) => isWithinLag(since);
  return {
    failed: ofFailed.filter((row) => isRecent(row) || isRenderFailure(row.reason)),
    away: ofAway.filter(isRecent),
    isNews: [...ofFailed, ...ofAway].some(isRecent),
  };
}

/** Those that are named; where there may be more than that, those that are found to be. */
async function* unreadable(known: Known, ports: PlannerPorts): AsyncGenerator<string> {
  const { unreadable: named = [] } = known.rolloutState;
  yield* named;
  if (named.length < keptUnreadable) return;
  for (const page of inParts(await readMembers(known, ports), 100)) {
    const clusters = page.map(({ cluster }) => cluster);
    const found = await readClusters(known, { clusters, with: ["slot", "syncs"] }, ports.table);
    for (const { cluster, newer } of found.values()) if (newer !== undefined) yield cluster;
  }
}

/** Members to whom nothing was assigned of what their stage has: the index has nothing of them, or what was before. */
async function unassigned(known: Known, ports: PlannerPorts): Promise<readonly (readonly [string, Tally])[]> {
  const found: [string, Tally][] = [];
  const bare = known.rolloutState.stages.filter(({ current, updatingTo }) => (current ?? updatingTo) === undefined);
  for (const stage of known.rolloutState.stages) {
    const stageRun = lastStageRunOf(stage, known.stageRuns);
    if (stageRun === undefined) continue;
    if (stage.current === undefined)
      for (const { cluster } of await notIn(stageRun, known, ports)) found.push([cluster, "waiting"]);
    for (const { cluster } of await targetsAt(stageRun, stageRun.unrendered, ports)) found.push([cluster, "failed"]);
    for (const { cluster } of await targetsAt(stageRun, waitingOrders(stageRun), ports))
      found.push([cluster, "waiting"]);
  }
  if (found.length + bare.length === 0) return [];
  const members = new Map((await readMembers(known, ports)).map(({ cluster, stage }) => [cluster, stage]));
  for (const [cluster, stage] of members) if (bare.some(({ name }) => name === stage)) found.push([cluster, "waiting"]);
  return found.filter(([cluster]) => members.has(cluster));
}

/** Members of its stage that wait for the next leg: they were registered anew while this one stood still. */
async function notIn(stageRun: StageRunRow, known: Known, ports: PlannerPorts): Promise<readonly Member[]> {
  if (stageRun.membersVersion === known.rolloutState.membersVersion) return [];
  const orders = Array.from({ length: stageRun.size }, (_, order) => order);
  const snapshot = new Map((await targetsAt(stageRun, orders, ports)).map(({ cluster, uid }) => [cluster, uid]));
  const members = await readMembers(known, ports);
  return members.filter(({ cluster, uid, stage }) => stage === stageRun.stage && snapshot.get(cluster) !== uid);
}

/** One that is lost is made anew when its leg goes on: to count is no reason to begin with that again. */
export async function targetsAt(
  stageRun: StageRunRow,
  orders: readonly number[],
  ports: PlannerPorts,
): Promise<readonly SnapshotTarget[]> {
  const snapshot = await unlessLost(
    readSnapshot(stageRun, orders, ports.lists),
    () => new Map<number, SnapshotTarget>(),
  );
  return [...snapshot.values()];
}

function waitingOrders(stageRun: StageRunRow): readonly number[] {
  const { next, size, aside, returned, rendering } = stageRun;
  const never = Array.from({ length: size - next }, (_, index) => next + index);
  return [...aside, ...returned, ...rendering, ...frozenIn(stageRun), ...never];
}
