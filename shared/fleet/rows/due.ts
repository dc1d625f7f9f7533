/**
 * The one timer. A row that waits for a time carries `dueShard` and `dueKey`; both are computed from the row by whoever
 * writes it, so no timer exists that cannot be recomputed.
 */

import { createHash } from "node:crypto";
import { defined } from "#shared/base/defined.ts";
import { textForm } from "#shared/fleet/rows/key-form.ts";
import { keyText, type Row, type RowKey } from "#shared/fleet/rows/row.ts";

/** More than one, so that no index partition takes all writes (1,000 a second). */
export const dueShardCount = 16;

/** The first watchdog: longer than a queue's usual delay, shorter than anybody's patience. */
const firstWatchdogSeconds = 30;
const longestWatchdogSeconds = 900;
/** Until the workers of a fleet get to the next one. A larger fleet has more workers. */
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
 * The row as it waits for `at`, or for nothing where that is undefined. Whoever writes it has made progress: what it
 * waited for before is forgotten, and so are the messages that were sent for it.
 * @param dispatches - those that count all the same, for the next watchdog.
 */
export function due<R extends Row>(row: R, at: string | undefined, dispatches?: number): R {
  const { dueShard: _shard, dueKey: _key, dispatches: _dispatches, ...rest } = row;
  const timer = at === undefined ? {} : dueAttributes(row, at);
  return { ...rest, ...timer, ...defined({ dispatches }) } as R;
}

/** What an update takes away from a row that is to wait for nothing. */
export const timerAttributes = ["dueShard", "dueKey", "dispatches"] as const satisfies readonly (keyof Row)[];

const shardForm = textForm("DUE#:shard");

/** As a policy grants it. */
export const dueShards = shardForm.pattern;

export function dueShard(shard: number): string {
  return shardForm.text({ shard: String(shard).padStart(2, "0") });
}

/** The time in a `dueKey`. */
export function dueAtOf(dueKey: string): string {
  return dueKey.slice(0, dueKey.indexOf("#"));
}

/** When to look again at a row for which the n-th message (from 0) is being sent now. */
export function watchdogAt(now: Date, dispatches: number): string {
  return later(now, watchdogSeconds(dispatches));
}

/**
 * The same for the first message, where so many others wait for the same workers. A fleet has one for 50 clusters, 20 for a
 * thousand, each of which may look for 6 s (decision 21): a message that is sent once more before the first one had its turn
 * costs a claim and a look.
 */
export function watchdogBehind(now: Date, others: number): string {
  const seconds = Math.min(others * secondsBehindEach, longestBehindSeconds);
  return later(now, Math.max(watchdogSeconds(0), seconds));
}

/** When workers have got to one more, for whom a message is sent now. @param before - when to those that wait already. */
export function queuedUntil(before: string | undefined, now: Date): string {
  const at = now.toISOString();
  return later(before === undefined || before < at ? at : before, secondsBehindEach);
}

/** How many wait for workers that get to all of them by then. */
export function queuedNow(until: string | undefined, now: Date): number {
  const seconds = until === undefined ? 0 : (Date.parse(until) - now.getTime()) / 1000;
  return Math.max(0, Math.round(seconds / secondsBehindEach));
}

/**
 * How late a row is that is due. The messages that went by before do not count: whoever gets one about what waits for
 * people, or for a workload, has looked and writes nothing.
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

/** A message that is late by so little is on time: clocks differ. */
const slackSeconds = 0.5;

export function hasCome(at: string | undefined, now: Date): boolean {
  return at !== undefined && at <= later(now, slackSeconds);
}

/**
 * An interval spread by ±5 %, always the same for the same key and time: a fleet that was applied at one instant is not
 * looked at again at one instant.
 */
export function jittered(intervalSeconds: number, seed: string): number {
  const fraction = (hashOf(seed) % 1000) / 1000;
  return intervalSeconds * (0.95 + fraction * 0.1);
}

/** Back-off of the n-th retry (from 1): 5 s doubling to 10 minutes. */
export function backoffSeconds(tries: number): number {
  return Math.min(5 * 2 ** Math.max(0, Math.min(tries - 1, 10)), 600);
}

/**
 * What ended badly for no reason that is known rests, and after each further time for twice as long: from 5 minutes, which
 * is over within anybody's patience, to 6 hours, which cost next to nothing.
 */
export function backoffSecondsAfter(times: number): number {
  return Math.min(300 * 2 ** Math.max(0, Math.min(times - 1, 10)), 6 * 60 * 60);
}

/** Spreads names evenly, always the same way. */
export function hashOf(text: string): number {
  return createHash("sha256").update(text).digest().readUInt32BE(0);
}
