import { Annotations } from "aws-cdk-lib";
import type { IConstruct } from "constructs";

/** How many invocations each queue may have at once. */
export type Bounds = Readonly<Record<keyof typeof wanted, number>>;

/** What may run at once, and the account that it has to fit into: both are the operator's to say, in context. */
export interface Concurrency {
  readonly bounds: Bounds;
  /** Kept for the timer, whatever else the account runs; absent where Lambda refuses to keep any. */
  readonly reservedForTick?: number;
  /** Of the fleet. */
  readonly clusters: number;
  /** What the account has in this region: Lambda's quota "Concurrent executions". */
  readonly quota: number;
  /** What it should have for a fleet of this size. */
  readonly quotaToAskFor: number;
  /** What would run then. */
  readonly boundsThen: Bounds;
}

/** Lambda takes no smaller bound for an event source. */
const fewest = 2;

/**
 * What a fleet wants, up to 10,000 clusters and more. A worker that looks at a cluster for 6 s looks at 100 of them in the
 * 10 minutes between two looks: half of the workers are left for rollouts. How much is pushed, planned and rendered has
 * little to do with the number of clusters; a fleet of a thousand gets the most that ever had something to do.
 */
const wanted = {
  resolve: { clustersEach: 100, most: 10, takes: 1 },
  rollout: { clustersEach: 50, most: 20, takes: 1 },
  // It waits for a `build`, which runs as well.
  render: { clustersEach: 100, most: 10, takes: 2 },
  // Lambda takes no larger bound.
  apply: { clustersEach: 50, most: 1000, takes: 1 },
  report: { clustersEach: 200, most: 5, takes: 1 },
} as const;

const queues = Object.keys(wanted) as readonly (keyof Bounds)[];

/** Of `api`, `webhook` and `tick`, together. A burst at the front door may be larger, and takes more for a moment. */
const roomForDoors = 10;

/** A run ends before the next begins; Lambda may deliver one of them twice. */
const tickAtOnce = 2;

/** Lambda reserves nothing that would leave the account's other functions with fewer, so nothing in a new account. */
const unreservedAtLeast = 100;

const newAccountQuota = 10;
const defaultClusters = 100;

/**
 * @param context.clusters - how many the fleet has, or is to have.
 * @param context.concurrency - the account's quota, or the part of it that is Starling's.
 * @throws Error that names the context and says what to write.
 */
export function concurrency(context: { readonly clusters?: string; readonly concurrency?: string }): Concurrency {
  const clusters = wholeNumber({ name: "clusters", text: context.clusters, least: 1 }) ?? defaultClusters;
  const given = wholeNumber({ name: "concurrency", text: context.concurrency, least: newAccountQuota });
  const quota = given ?? newAccountQuota;
  const boundsThen = boundsFor(clusters, Number.POSITIVE_INFINITY);
  return {
    bounds: boundsFor(clusters, quota - roomForDoors),
    ...(quota - tickAtOnce < unreservedAtLeast ? {} : { reservedForTick: tickAtOnce }),
    clusters,
    quota,
    quotaToAskFor: Math.max(taken(boundsThen) + roomForDoors, unreservedAtLeast + tickAtOnce),
    boundsThen,
  };
}

/** As much as the fleet wants, or as `room` has when each queue gives up the same part of what it wants beyond the least. */
function boundsFor(clusters: number, room: number): Bounds {
  const full = each((queue) => {
    const { clustersEach, most } = wanted[queue];
    return Math.min(most, Math.max(fewest, Math.ceil(clusters / clustersEach)));
  });
  const least = taken(each(() => fewest));
  const beyond = taken(full) - least;
  const spare = Math.max(0, room - least);
  if (spare >= beyond) return full;
  return each((queue) => fewest + Math.floor(((full[queue] - fewest) * spare) / beyond));
}

function each(bound: (queue: keyof Bounds) => number): Bounds {
  return Object.fromEntries(queues.map((queue) => [queue, bound(queue)])) as Record<keyof Bounds, number>;
}

/** Of the account's concurrency, when all of it runs. */
function taken(bounds: Bounds): number {
  return queues.reduce((sum, queue) => sum + bounds[queue] * wanted[queue].takes, 0);
}

function wholeNumber(given: {
  readonly name: string;
  readonly text: string | undefined;
  readonly least: number;
}): number | undefined {
  const { name, text, least } = given;
  if (text === undefined) return undefined;
  if (/^\d{1,6}$/.test(text) && Number(text) >= least) return Number(text);
  throw new Error(`context ${name} is "${text}"; give it a whole number of at least ${least}`);
}

/** Told at each synthesis: an account that is too small shows as a fleet that is slow, and as nothing else. */
export function sayWhichQuota(scope: IConstruct, concurrency: Concurrency): void {
  const { bounds, boundsThen, clusters, quota, quotaToAskFor } = concurrency;
  const needs = `${clusters} clusters (context clusters) need ${quotaToAskFor} concurrent executions of Lambda`;
  const enough = `${quota} are there (context concurrency)`;
  const lacking =
    bounds.apply < boundsThen.apply
      ? `${bounds.apply} clusters are worked on at once instead of ${boundsThen.apply}`
      : "none can be kept for the timer";
  const remedy = "ask for them (Service Quotas, Lambda, L-B99A9384), then say so by context concurrency";
  const told = quota >= quotaToAskFor ? `${needs}; ${enough}` : `${needs}; while ${enough}, ${lacking}: ${remedy}`;
  Annotations.of(scope).addInfoV2("starling:concurrency", told);
}
