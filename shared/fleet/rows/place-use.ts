/**
 * How long a cluster took places among the workers, and whether it leaves them to others for a while: pure functions of what
 * stands on its lease. Its worker alone writes that, and so no two writers share a number.
 */

import { later } from "#shared/fleet/rows/due.ts";

export interface PlaceUse {
  /** When the window begins that the seconds are of. */
  readonly since: string;
  readonly seconds: number;
  /** Until then the cluster is worked on in the slow lane. */
  readonly slowUntil?: string;
}

/** An honest look takes a few seconds, and there are two of them in a window at most where nothing changes. */
const budgetSeconds = 20;
const windowSeconds = 300;
/** As long as the longest pause between two looks at a cluster that does not answer. */
const slowSeconds = 600;
/** Nobody begins a look for less. */
const leastSeconds = 5;

/** What an invocation was to a cluster. */
export interface Stay {
  readonly from: Date;
  readonly to: Date;
  /** The cluster kept it waiting longer than a place is kept for. */
  readonly keptWaiting: boolean;
}

/** Whether the cluster leaves the places of the common lane to others. */
export function isSlow(use: PlaceUse | undefined, now: Date): boolean {
  return use?.slowUntil !== undefined && use.slowUntil > now.toISOString();
}

/** How long a worker of the common lane may stay with the cluster, in milliseconds. */
export function stayMs(use: PlaceUse | undefined, now: Date): number {
  return Math.max(budgetSeconds - spentSeconds(use, now), leastSeconds) * 1000;
}

/** @returns undefined where there is nothing to remember. */
export function useAfter(use: PlaceUse | undefined, { from, to, keptWaiting }: Stay): PlaceUse | undefined {
  const before = spentSeconds(use, from);
  const seconds = before + Math.max(0, to.getTime() - from.getTime()) / 1000;
  const slowUntil = keptWaiting || seconds >= budgetSeconds ? later(to, slowSeconds) : use?.slowUntil;
  const stillSlow = slowUntil !== undefined && slowUntil > to.toISOString();
  if (seconds === 0 && !stillSlow) return undefined;
  const since = before > 0 && use !== undefined ? use.since : from.toISOString();
  return { since, seconds, ...(stillSlow ? { slowUntil } : {}) };
}

function spentSeconds(use: PlaceUse | undefined, now: Date): number {
  return use === undefined || later(use.since, windowSeconds) <= now.toISOString() ? 0 : use.seconds;
}
