import { Annotations } from "aws-cdk-lib";
import type { IConstruct } from "constructs";
import type { Settings } from "#infra/settings.ts";
import { isElsewhere } from "#infra/zone-settings.ts";
import { defined } from "#shared/base/defined.ts";
import { homeZone } from "#shared/fleet/kinds/zone-name.ts";

/** The maximum number of concurrent invocations of each queue of `home`. */
export type Bounds = Readonly<Record<Queue, number>>;
/** The same for the two queues that each zone has. */
export type WorkerBounds = Pick<Bounds, (typeof ofEachZone)[number]>;

/** The workers of a zone in another account or region, which has a quota of its own. */
export interface ZoneConcurrency {
  readonly zone: string;
  readonly clusters: number;
  readonly quota: number;
  readonly quotaToAskFor: number;
}

/** The concurrency of the functions, and the quota of the account. The operator sets both. */
export interface Concurrency {
  readonly bounds: Bounds;
  /** @throws Error for a zone that the settings do not have. */
  boundsOfZone(zone: string): WorkerBounds;
  /** Concurrency that is reserved for the timer. Absent if the account's quota is too small to reserve any. */
  readonly reservedForTick?: number;
  /** Number of clusters of the fleet. */
  readonly clusters: number;
  /** Lambda's quota "Concurrent executions" of the account in this region. */
  readonly quota: number;
  /** The quota that a fleet of this size needs. */
  readonly quotaToAskFor: number;
  /** The zones in other accounts and regions, whose workers take nothing of this quota. */
  readonly elsewhere: readonly ZoneConcurrency[];
  /** The queues of the zones of this account and region with this quota, and with the quota that the fleet needs. */
  readonly lanes: Record<"now" | "then", readonly BoundLane[]>;
}

/** One queue of one zone. */
interface Lane {
  readonly queue: Queue;
  readonly zone: string;
  /** The clusters whose work goes through it. */
  readonly clusters: number;
  /** The bound that the operator sets. */
  readonly said?: number;
}

interface BoundLane extends Lane {
  readonly bound: number;
}

/** The smallest bound that Lambda accepts for an event source. */
const fewest = 2;

/**
 * The concurrency that a fleet needs, up to 10,000 clusters and more. A worker that checks a cluster in 6 s checks 100 clusters
 * in the 10 minutes between two checks, so that half of the workers are left for rollouts. Pushes, plans and renderings depend
 * little on the number of clusters: their numbers are the largest that were ever busy, for a fleet of a thousand.
 */
const desired = {
  resolve: { clustersEach: 100, most: 10, takes: 1 },
  rollout: { clustersEach: 50, most: 20, takes: 1 },
  // It waits for a `build`, which runs at the same time.
  render: { clustersEach: 100, most: 10, takes: 2 },
  // Lambda accepts no larger bound.
  apply: { clustersEach: 50, most: 1000, takes: 1 },
  // A quarter of the workers, for the few slow clusters.
  applySlow: { clustersEach: 200, most: 250, takes: 1 },
  report: { clustersEach: 200, most: 5, takes: 1 },
} as const;

type Queue = keyof typeof desired;
const queues = Object.keys(desired) as readonly Queue[];
const ofEachZone = ["apply", "applySlow"] as const satisfies readonly Queue[];

/** The quota of a new account. */
const defaultQuota = 10;

/** Concurrency for `api`, `webhook`, `tick` and `discover` together. A burst of requests may take more for a moment. */
const sparedForHttp = 10;

/** The smallest bound, because a scan takes seconds every ten minutes for a fleet of any size. */
export const discoverAtOnce = 2;

/** Two, because Lambda may deliver a tick twice. A tick ends before the next one begins. */
const tickAtOnce = 2;

/** Lambda must leave this much unreserved for the account's other functions, so that a new account can reserve nothing. */
const unreservedAtLeast = 100;

type ConcurrencySettings = Pick<Settings, "clusters" | "concurrency" | "zones" | `${Queue}Concurrency`>;

export function concurrency(settings: ConcurrencySettings): Concurrency {
  const { clusters, concurrency: quota } = settings;
  const all = lanesOf(settings);
  const zonesElsewhere = settings.zones.filter(isElsewhere);
  const lanesOfZone = (zone: string) => all.filter((lane) => lane.zone === zone);
  const lanes = lanesHere(settings);
  const now = boundsFor(lanes, quota - sparedForHttp);
  const then = boundsFor(lanes, Number.POSITIVE_INFINITY);
  const bound = [
    ...now,
    ...zonesElsewhere.flatMap(({ name, concurrency: own = defaultQuota }) => boundsFor(lanesOfZone(name), own)),
  ];
  const boundsOf = <Q extends Queue>(zone: string, of: readonly Q[]) =>
    Object.fromEntries(of.map((queue) => [queue, boundOf(bound, { queue, zone })])) as Record<Q, number>;
  return {
    bounds: boundsOf(homeZone, queues),
    boundsOfZone: (zone) => boundsOf(zone, ofEachZone),
    ...(quota - tickAtOnce < unreservedAtLeast ? {} : { reservedForTick: tickAtOnce }),
    clusters,
    quota,
    quotaToAskFor: Math.max(taken(then) + sparedForHttp, unreservedAtLeast + tickAtOnce),
    elsewhere: zonesElsewhere.map(({ name, concurrency: own = defaultQuota }) => ({
      zone: name,
      clusters: Math.max(...lanesOfZone(name).map((lane) => lane.clusters)),
      quota: own,
      quotaToAskFor: taken(boundsFor(lanesOfZone(name), Number.POSITIVE_INFINITY)),
    })),
    lanes: { now, then },
  };
}

function lanesOf(settings: ConcurrencySettings): readonly Lane[] {
  const { clusters, zones } = settings;
  const counted = zones.reduce((sum, zone) => sum + (zone.clusters ?? 0), 0);
  const sharers = 1 + zones.filter((zone) => zone.clusters === undefined).length;
  const share = Math.ceil(Math.max(0, clusters - counted) / sharers);
  const isOfEachZone = (queue: Queue) => ofEachZone.some((each) => each === queue);
  const ofHome = queues.map((queue) => ({
    queue,
    zone: homeZone,
    clusters: isOfEachZone(queue) ? share : clusters,
    ...defined({ said: settings[`${queue}Concurrency`] }),
  }));
  const ofZones = zones.flatMap((zone) =>
    ofEachZone.map((queue) => ({ queue, zone: zone.name, clusters: zone.clusters ?? share })),
  );
  return [...ofHome, ...ofZones];
}

/** The lanes that take from the quota of Starling's account. */
function lanesHere(settings: ConcurrencySettings): readonly Lane[] {
  const elsewhere = settings.zones.filter(isElsewhere);
  return lanesOf(settings).filter(({ zone }) => elsewhere.every(({ name }) => name !== zone));
}

function boundOf(lanes: readonly BoundLane[], { queue, zone }: Pick<Lane, "queue" | "zone">): number {
  const lane = lanes.find((each) => each.queue === queue && each.zone === zone);
  if (lane === undefined) throw new Error(`there is no zone ${zone} in the settings`);
  return lane.bound;
}

/** Queues with a set bound that need more than the account has. */
export function concurrencyProblems(settings: ConcurrencySettings): readonly string[] {
  const quota = settings.concurrency;
  const lanes = boundsFor(lanesHere(settings), quota - sparedForHttp);
  const said = lanes.filter((lane) => lane.said !== undefined);
  if (said.length === 0 || fitsInto(quota, lanes)) return [];
  const needed = taken(lanes) + sparedForHttp;
  const names = said.map(({ queue, bound }) => `${queue}Concurrency ${bound}`);
  return [
    `setting ${names.join(" and ")}: with the other queues, the API and the timer this needs ${needed} concurrent ` +
      `executions of Lambda, but setting concurrency is ${quota}; lower the setting, or request a larger quota ` +
      "(Service Quotas, Lambda, L-B99A9384) and raise setting concurrency",
  ];
}

/** The bounds that the fleet needs. If they exceed `room`, each queue is reduced by the same share of what it has above the least. */
function boundsFor(lanes: readonly Lane[], room: number): readonly BoundLane[] {
  const least = lanes.map((lane) => ({ ...lane, bound: lane.said ?? fewest }));
  const full = lanes.map((lane) => {
    const { clustersEach, most } = desired[lane.queue];
    return { ...lane, bound: lane.said ?? Math.min(most, Math.max(fewest, Math.ceil(lane.clusters / clustersEach))) };
  });
  const beyond = taken(full) - taken(least);
  const spare = Math.max(0, room - taken(least));
  if (spare >= beyond) return full;
  return full.map((lane) => {
    const lowest = lane.said ?? fewest;
    return { ...lane, bound: lowest + Math.floor(((lane.bound - lowest) * spare) / beyond) };
  });
}

/** The part of the account's concurrency that the queues use when all of them are busy. */
function taken(lanes: readonly BoundLane[]): number {
  return lanes.reduce((sum, { queue, bound }) => sum + bound * desired[queue].takes, 0);
}

function fitsInto(quota: number, lanes: readonly BoundLane[]): boolean {
  return taken(lanes) + sparedForHttp <= quota;
}

/** The clusters that all zones work on at once. */
function applies(lanes: readonly BoundLane[]): number {
  return lanes.reduce((sum, { queue, bound }) => sum + (queue === "apply" ? bound : 0), 0);
}

/** Prints the needed quota at each synthesis, because an account that is too small only shows as a slow fleet. */
export function sayWhichQuota(scope: IConstruct, concurrency: Concurrency): void {
  const { clusters, quota, quotaToAskFor, lanes } = concurrency;
  const { now, then } = lanes;
  const zones = new Set(now.map(({ zone }) => zone)).size;
  const where = zones === 1 ? "" : ` in ${zones} zones (home and setting zones)`;
  const needs = `${clusters} clusters (setting clusters)${where} need ${quotaToAskFor} concurrent executions of Lambda`;
  const enough = `the account has ${quota} (setting concurrency)`;
  const lacking =
    applies(now) < applies(then)
      ? `${applies(now)} clusters are worked on at once instead of ${applies(then)}`
      : fitsInto(quota, now)
        ? "none can be reserved for the timer"
        : `functions wait for each other: the queues alone may run ${taken(now) + discoverAtOnce} at once`;
  const remedy = "request them (Service Quotas, Lambda, L-B99A9384), then raise setting concurrency";
  const reported = quota >= quotaToAskFor ? `${needs}; ${enough}` : `${needs}, but ${enough}: ${lacking}; ${remedy}`;
  Annotations.of(scope).addInfoV2("starling:concurrency", reported);
}

/** Prints the quota that the workers of a zone need in their account and region. */
export function sayWhichQuotaOfZone(
  scope: IConstruct,
  { zone, clusters, quota, quotaToAskFor }: ZoneConcurrency,
): void {
  const needs = `${clusters} clusters of zone ${zone} need ${quotaToAskFor} concurrent executions of Lambda in its account and region`;
  const has = `it has ${quota} (field concurrency of the zone)`;
  const remedy = "request them there (Service Quotas, Lambda, L-B99A9384), then raise the field";
  const reported = quota >= quotaToAskFor ? `${needs}; ${has}` : `${needs}, but ${has}; ${remedy}`;
  Annotations.of(scope).addInfoV2("starling:zoneConcurrency", reported);
}
