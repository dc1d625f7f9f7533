import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { HeldLease, LeaseLost, leaseEnd } from "#functions/apply/lease/held-lease.ts";
import { acquireLease } from "#functions/apply/lease/lease.ts";
import type { Log } from "#shared/ports.ts";
import { MemoryTable } from "#test/support/memory-table.ts";

const begun = new Date("2026-03-01T10:00:00.000Z");
const invocationSeconds = 290;
const invocationEnd = new Date(begun.getTime() + invocationSeconds * 1000);
const silent: Log = { info: () => {}, warn: () => {}, error: () => {} };

const held: HeldLease[] = [];
let table: MemoryTable;
/** What a holder has written to keep what it holds. */
let updates: () => number;
const clock = { now: () => new Date() };

beforeEach(() => {
  vi.useFakeTimers({ now: begun });
  table = new MemoryTable();
});
afterEach(() => {
  vi.restoreAllMocks();
  for (const lease of held.splice(0)) lease.stop();
  vi.useRealTimers();
});

function wish(owner: string) {
  return { owner, now: clock.now(), until: leaseEnd(clock.now(), invocationEnd) };
}

async function hold(): Promise<HeldLease> {
  const lease = await acquireLease("c1", wish("mine"), table);
  if (lease === undefined) throw new Error("somebody has the lease");
  const spy = vi.spyOn(table, "update");
  updates = () => spy.mock.calls.length;
  const holder = new HeldLease(lease, invocationEnd, { table, clock, log: silent });
  held.push(holder);
  return holder;
}

const pass = (seconds: number) => vi.advanceTimersByTimeAsync(seconds * 1000);

test("a lease is renewed while its holder works, once in a quarter of a minute", async () => {
  const lease = await hold();
  await pass(14);
  expect(updates()).toBe(0);
  await pass(136);
  expect(updates()).toBe(10);
  await lease.ensure();
  expect(updates()).toBe(10);
  expect(await acquireLease("c1", wish("next"), table)).toBeUndefined();
});

test("nobody else renews or writes when it was stopped", async () => {
  const lease = await hold();
  lease.stop();
  await pass(60);
  expect(updates()).toBe(0);
  expect(vi.getTimerCount()).toBe(0);
  await expect(lease.ensure()).rejects.toMatchObject({ name: "LeaseLost" });
  expect(updates()).toBe(0);
});

test("nothing is renewed after the invocation, and nobody looks any more", async () => {
  const lease = await hold();
  await pass(invocationSeconds + 1);
  const before = updates();
  expect(vi.getTimerCount()).toBe(0);
  expect(lease.lease.until.getTime()).toBeLessThanOrEqual(invocationEnd.getTime() + 15_000);
  await pass(60);
  expect(updates()).toBe(before);
  await expect(lease.ensure()).rejects.toBeInstanceOf(LeaseLost);
});

test("what somebody else took meanwhile is lost, and stays it", async () => {
  const lease = await hold();
  // The holder's process stood still.
  vi.setSystemTime(begun.getTime() + 60_000);
  expect(await acquireLease("c1", wish("next"), table)).toMatchObject({ fence: 2 });
  await expect(lease.ensure()).rejects.toMatchObject({ name: "LeaseLost" });
  expect(await lease.again()).toBe(false);
  const before = updates();
  await pass(60);
  expect(updates()).toBe(before);
});

test("who wants it meanwhile is told of by looking again, not by keeping it", async () => {
  const lease = await hold();
  const { wanted } = lease.lease;
  expect(await acquireLease("c1", wish("next"), table)).toBeUndefined();
  await pass(16);
  expect(lease.lease.wanted).toBe(wanted);
  expect(await lease.again()).toBe(true);
  expect(lease.lease.wanted).toBe(wanted + 1);
});

test("what is worked at is told with a renewal, and forgotten with another look", async () => {
  const lease = await hold();
  lease.begun = { sync: "shop/web", wants: "apply", alone: true };
  await pass(16);
  const key = lease.lease.key;
  expect((await table.getMany([key]))[0]).toMatchObject({ begun: { sync: "shop/web" } });
  await lease.again();
  expect((await table.getMany([key]))[0]).not.toHaveProperty("begun");
});
