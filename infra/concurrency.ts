import { Annotations } from "aws-cdk-lib";
import type { IConstruct } from "constructs";
import type { Settings } from "#infra/settings.ts";

/** How many invocations each queue may have at once. */
export type Bounds = Readonly<Record<keyof typeof desired, number>>;

/** What may run at once, and the account that it has to fit into: both are the operator's to say. */
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
const desired = {
  resolve: { clustersEach: 100, most: 10, takes: 1 },
  rollout: { clustersEach: 50, most: 20, takes: 1 },
  // It waits for a `build`, which runs as well.
  render: { clustersEach: 100, most: 10, takes: 2 },
  // Lambda takes no larger bound.
  apply: { clustersEach: 50, most: 1000, takes: 1 },
  // Besides the others: a quarter of the workers for those few clusters that take long.
  applySlow: { clustersEach: 200, most: 250, takes: 1 },
  report: { clustersEach: 200, most: 5, takes: 1 },
} as const;

const queues = Object.keys(desired) as readonly (keyof Bounds)[];

/** Of `api`, `webhook`, `tick` and `discover`, together. A burst at the front door may be larger, and takes more for a moment. */
const sparedForHttp = 10;

/** It looks for seconds every ten minutes, whatever the fleet: the fewest that Lambda takes. */
export const discoverAtOnce = 2;

/** A run ends before the next begins; Lambda may deliver one of them twice. */
const tickAtOnce = 2;

/** Lambda reserves nothing that would leave the account's other functions with fewer, so nothing in a new account. */
const unreservedAtLeast = 100;

/** What somebody says of single queues, whatever the fleet wants. */
type Said = Partial<Bounds>;

type ConcurrencySettings = Pick<Settings, "clusters" | "concurrency" | `${keyof Bounds}Concurrency`>;

/** @throws Error with what to do when the queues that are said take more than the account has. */
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
    `setting ${names.join(" and ")}: with the other queues, the API and the timer that takes ${needed} concurrent ` +
      `executions of Lambda, and setting concurrency says that ${quota} are there; lower it, or ask for a larger quota ` +
      "(Service Quotas, Lambda, L-B99A9384) and say so by setting concurrency",
  );
}

/** As much as the fleet wants, or as `room` has when each queue gives up the same part of what it wants beyond the least. */
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

/** Of the account's concurrency, when all of it runs. */
function taken(bounds: Bounds): number {
  return queues.reduce((sum, queue) => sum + bounds[queue] * desired[queue].takes, 0);
}

function fitsInto(quota: number, bounds: Bounds): boolean {
  return taken(bounds) + sparedForHttp <= quota;
}

/** Told at each synthesis: an account that is too small shows as a fleet that is slow, and as nothing else. */
export function sayWhichQuota(scope: IConstruct, concurrency: Concurrency): void {
  const { bounds, boundsThen, clusters, quota, quotaToAskFor } = concurrency;
  const needs = `${clusters} clusters (setting clusters) need ${quotaToAskFor} concurrent executions of Lambda`;
  const enough = `${quota} are there (setting concurrency)`;
  const lacking =
    bounds.apply < boundsThen.apply
      ? `${bounds.apply} clusters are worked on at once instead of ${boundsThen.apply}`
      : fitsInto(quota, bounds)
        ? "none can be kept for the timer"
        : `functions wait for each other: the queues alone may run ${taken(bounds) + discoverAtOnce} at once`;
  const remedy = "ask for them (Service Quotas, Lambda, L-B99A9384), then say so by setting concurrency";
  const reported = quota >= quotaToAskFor ? `${needs}; ${enough}` : `${needs}; while ${enough}, ${lacking}: ${remedy}`;
  Annotations.of(scope).addInfoV2("starling:concurrency", reported);
}
