/**
 * Counts how long a cluster occupied workers, and decides whether it moves to the slow lane for a while. These are pure
 * functions of a field of the cluster's lease. Only the cluster's worker writes the field, so no two writers share a number.
 */

import { later } from "#shared/fleet/rows/due.ts";

export interface PlaceUse {
  /** When the window begins in which `seconds` are counted. */
  readonly since: string;
  readonly seconds: number;
  /** Until then the cluster is worked on in the slow lane. */
  readonly slowUntil?: string;
}

/** A usual check takes a few seconds, and an idle cluster has at most two of them in a window. */
const budgetSeconds = 20;
const windowSeconds = 300;
/** Equals the longest pause between two checks of a cluster that does not answer. */
const slowSeconds = 600;
/** Every check gets at least this much time. */
const leastSeconds = 5;

/** The time that an invocation spent on a cluster. */
export interface Stay {
  readonly from: Date;
  readonly to: Date;
  /** True when the cluster let the worker wait longer than the worker may wait in its lane. */
  readonly keptWaiting: boolean;
}

/** Whether the cluster's work goes to the slow lane. */
export function isSlow(use: PlaceUse | undefined, now: Date): boolean {
  return use?.slowUntil !== undefined && use.slowUntil > now.toISOString();
}

/** How long a worker of the common lane may stay with the cluster, in milliseconds. */
export function stayMs(use: PlaceUse | undefined, now: Date): number {
  return Math.max(budgetSeconds - spentSeconds(use, now), leastSeconds) * 1000;
}

/** @returns undefined when there is nothing to note. */
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
