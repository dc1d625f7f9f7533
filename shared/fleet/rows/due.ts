/**
 * The timer of the rows. A row that waits for a time carries `dueShard` and `dueKey`. Every writer computes both from the
 * row, so that each timer can be computed again.
 */

import { createHash } from "node:crypto";
import { defined } from "#shared/base/defined.ts";
import { textForm } from "#shared/fleet/rows/key-form.ts";
import { keyText, type Row, type RowKey } from "#shared/fleet/rows/row.ts";

/** More than one, so that no index partition takes all writes (1,000 a second). */
export const dueShardCount = 16;

/** The first watchdog: longer than the usual delay of a queue, and short enough for people who wait. */
const firstWatchdogSeconds = 30;
const longestWatchdogSeconds = 900;
/** Time that the workers of a fleet need for each message that waits before this one. A larger fleet has more workers. */
const secondsBehindEach = 0.3;
const longestBehindSeconds = 300;

export interface DueAttributes {
  readonly dueShard: string;
  readonly dueKey: string;
}

/** The index attributes of a row that is due at `at` (ISO 8601, UTC). */
export function dueAttributes(key: RowKey, at: string): DueAttributes {
  const shard = hashOf(keyText(key)) % dueShardCount;
  return { dueShard: dueShard(shard), dueKey: `${at}#${keyText(key)}` };
}

/**
 * The row as it waits for `at`, or for nothing when `at` is undefined. A write of a row is progress, so it replaces the
 * former timer and the count of the messages that were sent for it.
 * @param dispatches - the messages that still count for the next watchdog.
 */
export function due<R extends Row>(row: R, at: string | undefined, dispatches?: number): R {
  const { dueShard: _shard, dueKey: _key, dispatches: _dispatches, ...rest } = row;
  const timer = at === undefined ? {} : dueAttributes(row, at);
  return { ...rest, ...timer, ...defined({ dispatches }) } as R;
}

/** The attributes that an update removes from a row that waits for nothing any more. */
export const timerAttributes = ["dueShard", "dueKey", "dispatches"] as const satisfies readonly (keyof Row)[];

const shardForm = textForm("DUE#:shard");

/** The pattern of these keys, for the policies of the roles. */
export const dueShards = shardForm.pattern;

export function dueShard(shard: number): string {
  return shardForm.text({ shard: String(shard).padStart(2, "0") });
}

/** The time in a `dueKey`. */
export function dueAtOf(dueKey: string): string {
  return dueKey.slice(0, dueKey.indexOf("#"));
}

/** When a row is due again for which the n-th message (from 0) is sent now. */
export function watchdogAt(now: Date, dispatches: number): string {
  return later(now, watchdogSeconds(dispatches));
}

/**
 * The same for a first message, when `others` messages wait for the same workers. A fleet has one worker for 50 clusters
 * and 20 for a thousand, and each may check a cluster for 6 s (decision 21). A message that is repeated before the first
 * one had its turn costs a claim and a check.
 */
export function watchdogBehind(now: Date, others: number): string {
  const seconds = Math.min(others * secondsBehindEach, longestBehindSeconds);
  return later(now, Math.max(watchdogSeconds(0), seconds));
}

/**
 * When the workers reach one more row, for which a message is sent now.
 * @param before - when they reach the last one that waits already.
 */
export function queuedUntil(before: string | undefined, now: Date): string {
  const at = now.toISOString();
  return later(before === undefined || before < at ? at : before, secondsBehindEach);
}

/** How many rows wait, when the workers reach the last of them at `until`. */
export function queuedNow(until: string | undefined, now: Date): number {
  const seconds = until === undefined ? 0 : (Date.parse(until) - now.getTime()) / 1000;
  return Math.max(0, Math.round(seconds / secondsBehindEach));
}

/**
 * How many seconds ago a row became due. Earlier messages do not make it less late: a function that finds nothing new
 * about a row that waits for people, or for a workload, writes nothing.
 */
export function lateSeconds(now: Date, dueKey: string): number {
  return (now.getTime() - Date.parse(dueAtOf(dueKey))) / 1000;
}

function watchdogSeconds(dispatches: number): number {
  return Math.min(firstWatchdogSeconds * 2 ** Math.min(dispatches, 10), longestWatchdogSeconds);
}

export function later(from: Date | string, seconds: number): string {
  return new Date(new Date(from).getTime() + Math.round(seconds * 1000)).toISOString();
}

/** The later of two times in ISO 8601. */
export function laterOf(one: string, other: string): string {
  return one > other ? one : other;
}

/** A time counts as reached this much before it, because clocks differ. */
const slackSeconds = 0.5;

export function hasCome(at: string | undefined, now: Date): boolean {
  return at !== undefined && at <= later(now, slackSeconds);
}

/**
 * An interval spread by ±5 %, always the same for the same seed. A fleet that was applied at one instant is therefore not
 * checked at one instant.
 */
export function jittered(intervalSeconds: number, seed: string): number {
  const fraction = (hashOf(seed) % 1000) / 1000;
  return intervalSeconds * (0.95 + fraction * 0.1);
}

/** So long before a turn counts as the turn itself. */
const turnShare = 0.1;

/**
 * The next of the turns that are an interval apart, and for the same seed at the same times: after something that happened
 * in between, all with the seed meet again. The turns of a multiple of the interval are among them.
 */
export function nextSharedTime(from: string, intervalSeconds: number, seed: string): string {
  const interval = intervalSeconds * 1000;
  const phase = hashOf(seed) % interval;
  const least = Date.parse(from) + interval * turnShare;
  return new Date(phase + Math.ceil((least - phase) / interval) * interval).toISOString();
}

/** Back-off of the n-th retry (from 1): 5 s doubling to 10 minutes. */
export function backoffSeconds(tries: number): number {
  return Math.min(5 * 2 ** Math.max(0, Math.min(tries - 1, 10)), 600);
}

/**
 * Back-off of work that failed for an unknown reason: 5 minutes, which people can wait for, doubled after each further
 * failure up to 6 hours, which cost next to nothing.
 */
export function backoffSecondsAfter(times: number): number {
  return Math.min(300 * 2 ** Math.max(0, Math.min(times - 1, 10)), 6 * 60 * 60);
}

/** Spreads names evenly, always the same way. */
export function hashOf(text: string): number {
  return createHash("sha256").update(text).digest().readUInt32BE(0);
}
