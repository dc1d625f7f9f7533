import { readMembers } from "#functions/rollout/members.ts";
import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import { readClusters } from "#functions/rollout/read-clusters.ts";
import type { Known } from "#functions/rollout/read-subject.ts";
import { rowsAbout } from "#functions/rollout/rows-about.ts";
import { firstEntries, lagSeconds } from "#functions/rollout/state-entries.ts";
import { keptUnreadable } from "#functions/rollout/transaction.ts";
import { readSealed } from "#shared/adapters/sealed-targets.ts";
import { unlessLost } from "#shared/base/errors.ts";
import { inParts } from "#shared/base/in-parts.ts";
import { isRenderFailure } from "#shared/fleet/rollout/assignments.ts";
import { lastLegOf } from "#shared/fleet/rollout/feed.ts";
import { frozenIn } from "#shared/fleet/rollout/legs.ts";
import type { Member } from "#shared/fleet/rollout/plan.ts";
import { membersOfAll } from "#shared/fleet/rollout/slots.ts";
import { namesShown } from "#shared/fleet/rollout/subject-status.ts";
import { later } from "#shared/fleet/rows/due.ts";
import { clusterOf, keys, ranges, stateIndex } from "#shared/fleet/rows/keys.ts";
import type { ArrivalRow, LegRow, SealedTarget } from "#shared/fleet/rows/rollout-rows.ts";
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

export interface SeenInLook {
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
export async function clustersByState(known: Known, look: SeenInLook, ports: PlannerPorts): Promise<ByState> {
  const { all, states } = look;
  const { subject, unit, row } = known;
  const { table } = ports;
  const most = all ? undefined : mostRead;
  const [pages, arrivals, sealed] = await Promise.all([
    Promise.all([...indexed.keys()].map((phase) => firstEntries(subject, table, { phase, most }))),
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
  for (const { cluster } of arrivals.failed) note(cluster, "failed");
  for (const { cluster } of arrivals.away) note(cluster, "unreachable");
  // Of the arrivals that wait only those are read that are counted already.
  const asked = unit.arrivals.waiting === 0 ? [] : [...worst.keys()];
  const counted = await table.getMany(
    asked.map((cluster) => keys.arrival(subject, "waiting", cluster)),
    { newer: "kept" },
  );
  for (const row of counted) note(clusterOf(row), "waiting");
  for (const [cluster, state] of sealed) note(cluster, state);
  const counts = { ready: 0, drifted: 0, changing: 0, failed: 0, unreachable: 0, waiting: 0 };
  for (const state of worst.values()) counts[state]++;
  const before = row.status.clusters;
  // Nobody has counted them yet.
  if ([...full].some((state) => (before?.[state] ?? 0) < counts[state]))
    return clustersByState(known, { ...look, all: true }, ports);
  for (const state of full) counts[state] = before?.[state] ?? 0;
  const waiting = counts.waiting + unit.arrivals.waiting - counted.length;
  const named = (state: Tally) =>
    [...worst]
      .flatMap(([cluster, its]) => (its === state ? cluster : []))
      .sort()
      .slice(0, namesShown);
  return {
    counts: clusterCounts(membersOfAll(unit), { ...counts, waiting }),
    failed: named("failed"),
    unreachable: named("unreachable"),
    isNews: arrivals.isNews || others.length > 0,
    isBehind: others.some(([, state]) => state !== "ready"),
  };
}

/**
 * Clusters whose catch-up ended so lately that the index may not say it yet; and those that nothing was assigned to, as it
 * could not be rendered. After its lag the index says the others, and whether they are ready by themselves since.
 */
async function catchUpsThatEnded(
  { subject, unit }: Known,
  { table, clock }: PlannerPorts,
): Promise<Record<"failed" | "away", readonly ArrivalRow[]> & Pick<ByState, "isNews">> {
  const { failed, away = 0 } = unit.arrivals;
  const now = clock.now().toISOString();
  const isWithinLag = (at: string) => later(at, lagSeconds) > now;
  // A version before this one did not note it.
  const mayBeNews = isWithinLag(unit.arrivalEndedAt ?? now);
  const assigned = unit.stages.reduce((sum, { failedArrivals }) => sum + failedArrivals, 0);
  const read = async (state: "failed" | "away", isRead: boolean) =>
    isRead ? (await rowsAbout(ranges.arrivals(subject, state), table)).rows : [];
  const [ofFailed, ofAway] = await Promise.all([
    read("failed", failed > 0 && (mayBeNews || failed > assigned)),
    read("away", away > 0 && mayBeNews),
  ]);
  const isRecent = ({ since }: ArrivalRow) => isWithinLag(since);
  return {
    failed: ofFailed.filter((row) => isRecent(row) || isRenderFailure(row.reason)),
    away: ofAway.filter(isRecent),
    isNews: [...ofFailed, ...ofAway].some(isRecent),
  };
}

/** Those that are named; where there may be more than that, those that are found to be. */
async function* unreadable(known: Known, ports: PlannerPorts): AsyncGenerator<string> {
  const { unreadable: named = [] } = known.unit;
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
  const bare = known.unit.stages.filter(({ on, moving }) => (on ?? moving) === undefined);
  for (const stage of known.unit.stages) {
    const leg = lastLegOf(stage, known.legs);
    if (leg === undefined) continue;
    if (stage.on === undefined)
      for (const { cluster } of await notIn(leg, known, ports)) found.push([cluster, "waiting"]);
    for (const { cluster } of await sealedIn(leg, leg.unrendered, ports)) found.push([cluster, "failed"]);
    for (const { cluster } of await sealedIn(leg, waitingOrders(leg), ports)) found.push([cluster, "waiting"]);
  }
  if (found.length + bare.length === 0) return [];
  const members = new Map((await readMembers(known, ports)).map(({ cluster, stage }) => [cluster, stage]));
  for (const [cluster, stage] of members) if (bare.some(({ name }) => name === stage)) found.push([cluster, "waiting"]);
  return found.filter(([cluster]) => members.has(cluster));
}

/** Members of its stage that wait for the next leg: they were registered anew while this one stood still. */
async function notIn(leg: LegRow, known: Known, ports: PlannerPorts): Promise<readonly Member[]> {
  if (leg.membersVersion === known.unit.membersVersion) return [];
  const orders = Array.from({ length: leg.size }, (_, order) => order);
  const sealed = new Map((await sealedIn(leg, orders, ports)).map(({ cluster, uid }) => [cluster, uid]));
  const members = await readMembers(known, ports);
  return members.filter(({ cluster, uid, stage }) => stage === leg.stage && sealed.get(cluster) !== uid);
}

/** One that is lost is made anew when its leg goes on: to count is no reason to begin with that again. */
export async function sealedIn(
  leg: LegRow,
  orders: readonly number[],
  ports: PlannerPorts,
): Promise<readonly SealedTarget[]> {
  const sealed = await unlessLost(readSealed(leg, orders, ports.lists), () => new Map<number, SealedTarget>());
  return [...sealed.values()];
}

function waitingOrders(leg: LegRow): readonly number[] {
  const { next, size, aside, returned, rendering } = leg;
  const never = Array.from({ length: size - next }, (_, index) => next + index);
  return [...aside, ...returned, ...rendering, ...frozenIn(leg), ...never];
}
