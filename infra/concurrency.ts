import { Annotations } from "aws-cdk-lib";
import type { IConstruct } from "constructs";
import type { Settings } from "#infra/settings.ts";

/** The maximum number of concurrent invocations of each queue. */
export type Bounds = Readonly<Record<keyof typeof desired, number>>;

/** The concurrency of the functions, and the quota of the account. The operator sets both. */
export interface Concurrency {
  readonly bounds: Bounds;
  /** Concurrency that is reserved for the timer. Absent if the account's quota is too small to reserve any. */
  readonly reservedForTick?: number;
  /** Number of clusters of the fleet. */
  readonly clusters: number;
  /** Lambda's quota "Concurrent executions" of the account in this region. */
  readonly quota: number;
  /** The quota that a fleet of this size needs. */
  readonly quotaToAskFor: number;
  /** The bounds with that quota. */
  readonly boundsThen: Bounds;
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

const queues = Object.keys(desired) as readonly (keyof Bounds)[];

/** Concurrency for `api`, `webhook`, `tick` and `discover` together. A burst of requests may take more for a moment. */
const sparedForHttp = 10;

/** The smallest bound, because a scan takes seconds every ten minutes for a fleet of any size. */
export const discoverAtOnce = 2;

/** Two, because Lambda may deliver a tick twice. A tick ends before the next one begins. */
const tickAtOnce = 2;

/** Lambda must leave this much unreserved for the account's other functions, so that a new account can reserve nothing. */
const unreservedAtLeast = 100;

/** Bounds of single queues that the operator sets. */
type Said = Partial<Bounds>;

type ConcurrencySettings = Pick<Settings, "clusters" | "concurrency" | `${keyof Bounds}Concurrency`>;

/** @throws Error with what to do when the queues with a set bound need more than the account has. */
export function concurrency(settings: ConcurrencySettings): Concurrency {
  const { clusters, concurrency: quota } = settings;
  const said: Said = Object.fromEntries(
    queues.flatMap((queue) => {
      const bound = settings[`${queue}Concurrency`];
      return bound === undefined ? [] : [[queue, bound]];
    }),
  );
  const bounds = boundsFor(clusters, { said, room: quota - sparedForHttp });
  const boundsThen = boundsFor(clusters, { said, room: Number.POSITIVE_INFINITY });
  if (Object.keys(said).length > 0) refuseTooMuch(said, { bounds, quota });
  return {
    bounds,
    ...(quota - tickAtOnce < unreservedAtLeast ? {} : { reservedForTick: tickAtOnce }),
    clusters,
    quota,
    quotaToAskFor: Math.max(taken(boundsThen) + sparedForHttp, unreservedAtLeast + tickAtOnce),
    boundsThen,
  };
}

function refuseTooMuch(said: Said, { bounds, quota }: { readonly bounds: Bounds; readonly quota: number }): void {
  if (fitsInto(quota, bounds)) return;
  const needed = taken(bounds) + sparedForHttp;
  const names = Object.entries(said).map(([queue, bound]) => `${queue}Concurrency ${bound}`);
  throw new Error(
    `setting ${names.join(" and ")}: with the other queues, the API and the timer this needs ${needed} concurrent ` +
      `executions of Lambda, but setting concurrency is ${quota}; lower the setting, or request a larger quota ` +
      "(Service Quotas, Lambda, L-B99A9384) and raise setting concurrency",
  );
}

/** The bounds that the fleet needs. If they exceed `room`, each queue is reduced by the same share of what it has above the least. */
function boundsFor(clusters: number, { said, room }: { readonly said: Said; readonly room: number }): Bounds {
  const least = each((queue) => said[queue] ?? fewest);
  const full = each((queue) => {
    const { clustersEach, most } = desired[queue];
    return said[queue] ?? Math.min(most, Math.max(fewest, Math.ceil(clusters / clustersEach)));
  });
  const beyond = taken(full) - taken(least);
  const spare = Math.max(0, room - taken(least));
  if (spare >= beyond) return full;
  return each((queue) => least[queue] + Math.floor(((full[queue] - least[queue]) * spare) / beyond));
}

function each(bound: (queue: keyof Bounds) => number): Bounds {
  return Object.fromEntries(queues.map((queue) => [queue, bound(queue)])) as Record<keyof Bounds, number>;
}

/** The part of the account's concurrency that the queues use when all of them are busy. */
function taken(bounds: Bounds): number {
  return queues.reduce((sum, queue) => sum + bounds[queue] * desired[queue].takes, 0);
}

function fitsInto(quota: number, bounds: Bounds): boolean {
  return taken(bounds) + sparedForHttp <= quota;
}

/** Prints the needed quota at each synthesis, because an account that is too small only shows as a slow fleet. */
export function sayWhichQuota(scope: IConstruct, concurrency: Concurrency): void {
  const { bounds, boundsThen, clusters, quota, quotaToAskFor } = concurrency;
  const needs = `${clusters} clusters (setting clusters) need ${quotaToAskFor} concurrent executions of Lambda`;
  const enough = `the account has ${quota} (setting concurrency)`;
  const lacking =
    bounds.apply < boundsThen.apply
      ? `${bounds.apply} clusters are worked on at once instead of ${boundsThen.apply}`
      : fitsInto(quota, bounds)
        ? "none can be reserved for the timer"
        : `functions wait for each other: the queues alone may run ${taken(bounds) + discoverAtOnce} at once`;
  const remedy = "request them (Service Quotas, Lambda, L-B99A9384), then raise setting concurrency";
  const reported = quota >= quotaToAskFor ? `${needs}; ${enough}` : `${needs}, but ${enough}: ${lacking}; ${remedy}`;
  Annotations.of(scope).addInfoV2("starling:concurrency", reported);
}
