import { type PlannerPorts, readMembers } from "#functions/rollout/read/planner-ports.ts";
import { readClusters, rowsAbout } from "#functions/rollout/read/read-clusters.ts";
import { firstEntries } from "#shared/adapters/state-entries.ts";
import { readSnapshot } from "#shared/adapters/stored-list.ts";
import { unlessLost } from "#shared/base/errors.ts";
import { inParts } from "#shared/base/in-parts.ts";
import { isRenderFailure } from "#shared/fleet/rollout/assignments.ts";
import type { Member } from "#shared/fleet/rollout/desired-plan.ts";
import { type Known, keptUnreadable, lagSeconds } from "#shared/fleet/rollout/facts.ts";
import { namesShownInStatus } from "#shared/fleet/rollout/owner-status.ts";
import { membersOfAll } from "#shared/fleet/rollout/slots.ts";
import { lastStageRunOf } from "#shared/fleet/rollout/stage-runs.ts";
import { later } from "#shared/fleet/rows/due.ts";
import { clusterOfKey, keys, ranges, stateIndex } from "#shared/fleet/rows/keys.ts";
import type { CatchUpRow, SnapshotTarget, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { type ClusterTallies, clusterCounts, indexTallies, type Tally, worseOf } from "#shared/fleet/sync/tally.ts";

/** By the states of the index. */
const indexed = new Map(Object.entries(indexTallies).map(([phase, state]) => [stateIndex.word(phase), state]));

export interface ByState {
  readonly counts: ClusterTallies;
  /** The first unhealthy clusters, by name. */
  readonly failed: readonly string[];
  readonly unreachable: readonly string[];
  /** A catch-up ended so lately that the index may not have it yet, or a cluster differs from the index. */
  readonly isNews: boolean;
  /** The index does not have an unhealthy cluster yet. */
  readonly isBehind: boolean;
}

export interface SeenInCheck {
  readonly all: boolean;
  /** Facts about clusters whose rows were read. */
  readonly states: ReadonlyMap<string, Tally>;
}

/** The state of a cluster in the index once the index has these rows. */
export function stateByRows(syncs: readonly Pick<SyncRow, "stateSk">[]): Tally {
  const words = syncs.map(({ stateSk = "" }) => stateIndex.parse(stateSk)?.state ?? "");
  return words.map((word) => indexed.get(word) ?? "ready").reduce(worseOf, "ready");
}

/** A check of some clusters reads at most this many Syncs of a state. */
const mostRead = 100;

/**
 * Counts the members by their worst Sync. Only Syncs that are not ready are read, from the state index: it may lag a
 * moment, and the next check corrects that. A catch-up that failed or did not answer within the index's lag counts as
 * such, and so do rows that the check read of a cluster, better or worse.
 * @param check.all - true for a check of every cluster. Any other check reads a page of each state; for a state with
 *   more, it uses the earlier count, which the next full check corrects.
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
  // For a state with more than a page, nobody knows whether the index has one of them.
  const isNews = (cluster: string, state: Tally) => (worst.get(cluster) ?? "ready") !== state && !full.has(state);
  const others = [...states].filter(([cluster, state]) => isNews(cluster, state));
  for (const [cluster, state] of others) worst.set(cluster, state);
  for await (const cluster of unreadable(known, ports)) note(cluster, "unreachable");
  for (const { cluster } of catchUps.failed) note(cluster, "failed");
  for (const { cluster } of catchUps.away) note(cluster, "unreachable");
  // Waiting catch-ups are only read when they are counted already.
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
  // They have not been counted yet.
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
 * Clusters whose catch-up ended so lately that the index may not have it yet, and clusters without an assignment
 * because they could not be rendered. After its lag the index has the others, and whether they have become ready since.
 */
async function catchUpsThatEnded(
  { owner, rolloutState }: Known,
  { table, clock }: PlannerPorts,
): Promise<Record<"failed" | "away", readonly CatchUpRow[]> & Pick<ByState, "isNews">> {
  const { failed, away = 0 } = rolloutState.catchUps;
  const now = clock.now().toISOString();
  const isWithinLag = (at: string) => later(at, lagSeconds) > now;
  // A version before this one did not record it.
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

/** The named clusters; where there may be more, those that are found. */
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

/** Members that were assigned nothing of their stage's rollout: the index has nothing of them, or something older. */
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
    for (const cluster of await takenOutOf(stageRun, known, ports)) found.push([cluster, "waiting"]);
  }
  if (found.length + bare.length === 0) return [];
  const members = new Map((await readMembers(known, ports)).map(({ cluster, stage }) => [cluster, stage]));
  for (const [cluster, stage] of members) if (bare.some(({ name }) => name === stage)) found.push([cluster, "waiting"]);
  return found.filter(([cluster]) => members.has(cluster));
}

/** Clusters that people skipped: they wait for a retry. Only where not all have their names in the row, targets are read. */
async function takenOutOf(
  { takenOut, ...stageRun }: StageRunRow,
  { owner }: Known,
  { table }: PlannerPorts,
): Promise<readonly string[]> {
  if (takenOut === undefined) return [];
  if (takenOut.first.length === takenOut.count) return takenOut.first.map(({ cluster }) => cluster);
  const { rows } = await rowsAbout(ranges.targets(owner, stageRun), table);
  return rows.filter((target) => target.takenOut === true).map(({ cluster }) => cluster);
}

/** Members of its stage that wait for the next stage run: they were registered again while this one stood still. */
async function notIn(stageRun: StageRunRow, known: Known, ports: PlannerPorts): Promise<readonly Member[]> {
  if (stageRun.membersVersion === known.rolloutState.membersVersion) return [];
  const orders = Array.from({ length: stageRun.size }, (_, order) => order);
  const snapshot = new Map((await targetsAt(stageRun, orders, ports)).map(({ cluster, uid }) => [cluster, uid]));
  const members = await readMembers(known, ports);
  return members.filter(({ cluster, uid, stage }) => stage === stageRun.stage && snapshot.get(cluster) !== uid);
}

/** A lost snapshot is taken again when its stage run continues: a count is no reason to begin that. */
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
  const { next, size, holds, returned } = stageRun;
  const never = Array.from({ length: size - next }, (_, index) => next + index);
  return [...holds.flatMap(({ clusters }) => clusters), ...returned, ...never];
}
