import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { HeldLease, LeaseLost, leaseEnd } from "#functions/apply/lease/held-lease.ts";
import { acquireLease } from "#functions/apply/lease/lease.ts";
import type { Log } from "#shared/ports.ts";
import { MemoryTable } from "#test/support/memory-table.ts";

const begun = new Date("2026-03-01T10:00:00.000Z");
const invocationSeconds = 290;
const invocationEnd = new Date(begun.getTime() + invocationSeconds * 1000);
const away = new Error("the table is away");
const warnings: unknown[] = [];
const log: Log = { info() {}, error() {}, warn: (message, fields) => warnings.push({ message, ...fields }) };

const held: HeldLease[] = [];
let table: MemoryTable;
/** Counts the writes with which a holder keeps its lease. */
let updates: () => number;
/** From now on no renewal is written; the second function makes the table work again. */
let fail: () => () => void;
const clock = { now: () => new Date() };

beforeEach(() => {
  vi.useFakeTimers({ now: begun });
  table = new MemoryTable();
});
afterEach(() => {
  vi.restoreAllMocks();
  for (const lease of held.splice(0)) lease.stop();
  warnings.length = 0;
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
  fail = () => {
    const failing = spy.mockRejectedValue(away);
    return () => failing.mockRestore();
  };
  const holder = new HeldLease(lease, invocationEnd, { table, clock, log });
  held.push(holder);
  return holder;
}

const pass = (seconds: number) => vi.advanceTimersByTimeAsync(seconds * 1000);

test("a lease is renewed every 15 seconds while its holder works", async () => {
  const lease = await hold();
  await pass(14);
  expect(updates()).toBe(0);
  await pass(136);
  expect(updates()).toBe(10);
  await lease.ensure();
  expect(updates()).toBe(10);
  expect(await acquireLease("c1", wish("next"), table)).toBeUndefined();
});

test("a holder that was stopped renews nothing, and may write nothing", async () => {
  const lease = await hold();
  lease.stop();
  expect(vi.getTimerCount()).toBe(0);
  await pass(60);
  expect(updates()).toBe(0);
  await expect(lease.ensure()).rejects.toMatchObject({ name: "LeaseLost" });
  expect(updates()).toBe(0);
});

test("a lease is not renewed past the end of its invocation", async () => {
  const lease = await hold();
  await pass(invocationSeconds - 15);
  const before = updates();
  await pass(15);
  // The lease lasts as long as it may already.
  expect(updates()).toBe(before);
  expect(vi.getTimerCount()).toBe(0);
  expect(lease.lease.until.getTime()).toBeLessThanOrEqual(invocationEnd.getTime() + 15_000);
  await pass(60);
  expect(updates()).toBe(before);
  await expect(lease.ensure()).rejects.toBeInstanceOf(LeaseLost);
});

test("a lease that another worker took meanwhile is lost for good", async () => {
  const lease = await hold();
  // The holder's process was paused.
  vi.setSystemTime(begun.getTime() + 60_000);
  expect(await acquireLease("c1", wish("next"), table)).toMatchObject({ fence: 2 });
  await expect(lease.ensure()).rejects.toMatchObject({ name: "LeaseLost" });
  expect(await lease.again()).toBe(false);
  const before = updates();
  await pass(60);
  expect(updates()).toBe(before);
});

test("a holder learns of another worker's request by checking again, and not by a renewal", async () => {
  const lease = await hold();
  const { desired } = lease.lease;
  expect(await acquireLease("c1", wish("next"), table)).toBeUndefined();
  expect(await lease.isRequested()).toBe(false);
  await pass(16);
  expect(await lease.isRequested()).toBe(true);
  expect(lease.lease.desired).toBe(desired);
  expect(await lease.again()).toBe(true);
  expect(await lease.isRequested()).toBe(false);
  expect(lease.lease.desired).toBe(desired + 1);
});

test("a holder learns of a request after a second, and reads the table no more often", async () => {
  const lease = await hold();
  expect(await acquireLease("c1", wish("next"), table)).toBeUndefined();
  const asked = vi.spyOn(table, "get");
  expect(await lease.isRequested()).toBe(false);
  expect(asked).not.toHaveBeenCalled();
  await pass(1);
  expect(await lease.isRequested()).toBe(true);
  expect(await lease.again()).toBe(true);
  await pass(1);
  asked.mockClear();
  asked.mockRejectedValueOnce(away);
  expect(await lease.isRequested()).toBe(false);
  expect(await lease.isRequested()).toBe(false);
  expect(asked).toHaveBeenCalledTimes(1);
});

test("a renewal stores the note of the Sync in progress, and a new check clears it", async () => {
  const lease = await hold();
  lease.begun = { sync: "shop/web", desired: "apply", alone: true };
  await pass(16);
  const key = lease.lease.key;
  expect((await table.getMany([key]))[0]).toMatchObject({ begun: { sync: "shop/web" } });
  await lease.again();
  expect((await table.getMany([key]))[0]).not.toHaveProperty("begun");
});

test.each<[string, string, number]>([
  ["for 45 seconds", "09:59:00", 45_000],
  ["for 45 seconds, with a minute left", "10:03:50", 45_000],
  ["until 15 seconds after the end of the invocation at most", "10:04:30", 35_000],
  ["for 15 seconds, with no time left", "10:04:50", 15_000],
])("a lease is held %s", (_howLong, now, expected) => {
  const from = new Date(`2026-03-01T${now}.000Z`);
  expect(leaseEnd(from, invocationEnd).getTime() - from.getTime()).toBe(expected);
});

test("a renewal that fails is logged and tried again, and the holder stops writing when it comes too late", async () => {
  const lease = await hold();
  const remedy = fail();
  await pass(20);
  expect(warnings).toContainEqual({ message: "a lease was not renewed", error: away });
  await lease.ensure();
  await pass(11);
  const lost = "the lease of CL#c1 with fence 1 was lost";
  await expect(lease.ensure()).rejects.toMatchObject({ message: expect.stringContaining(lost), cause: away });
  await expect(lease.again()).rejects.toBe(away);
  remedy();
  await pass(1);
  await lease.ensure();
  expect(await acquireLease("c1", wish("next"), table)).toBeUndefined();
});

test("a write with little time left on the lease renews it first", async () => {
  const lease = await hold();
  // The holder's process was paused.
  vi.setSystemTime(begun.getTime() + 29_999);
  await lease.ensure();
  expect(updates()).toBe(0);
  vi.setSystemTime(begun.getTime() + 30_000);
  await lease.ensure();
  expect(updates()).toBe(1);
  expect(lease.lease.until).toEqual(new Date(begun.getTime() + 75_000));
});

test("simultaneous writes renew the lease once", async () => {
  const lease = await hold();
  vi.setSystemTime(begun.getTime() + 31_000);
  await Promise.all([lease.ensure(), lease.ensure(), lease.again(), lease.ensure()]);
  // A new check always writes, to see whether another worker asks for the lease.
  expect(updates()).toBe(2);
});

describe("a holder with a renewal in progress", () => {
  let renewals: PromiseWithResolvers<void>[];

  /** Each renewal waits to be answered. */
  async function holdSlowly(): Promise<HeldLease> {
    const lease = await hold();
    renewals = [];
    const update = MemoryTable.prototype.update.bind(table);
    vi.spyOn(table, "update").mockImplementation(async (write) => {
      const answer = Promise.withResolvers<void>();
      renewals.push(answer);
      await answer.promise;
      return update(write);
    });
    return lease;
  }

  test("no second renewal begins, and the checks that wait do not pile up", async () => {
    const lease = await holdSlowly();
    await pass(26);
    expect(renewals).toHaveLength(1);
    renewals[0]?.resolve();
    await pass(1);
    expect(renewals).toHaveLength(1);

    vi.setSystemTime(begun.getTime() + 60_000);
    const ensured = lease.ensure();
    const again = lease.again();
    await pass(1);
    expect(renewals).toHaveLength(2);
    renewals[1]?.resolve();
    await ensured;
    await pass(1);
    expect(renewals).toHaveLength(3);
    const third = lease.again();
    await pass(1);
    expect(renewals).toHaveLength(3);
    renewals[2]?.resolve();
    expect(await again).toBe(true);
    await pass(1);
    renewals[3]?.resolve();
    expect(await third).toBe(true);
  });

  test("a write that waits for a renewal which fails tries the renewal itself", async () => {
    const lease = await holdSlowly();
    await pass(31);
    const ensured = lease.ensure();
    renewals[0]?.reject(away);
    await pass(0);
    renewals[1]?.resolve();
    await ensured;
    expect(renewals).toHaveLength(2);
  });

  test("a lease that is stopped stays stopped after the renewal", async () => {
    const lease = await holdSlowly();
    await pass(16);
    lease.stop();
    renewals[0]?.resolve();
    await pass(1);
    await expect(lease.ensure()).rejects.toBeInstanceOf(LeaseLost);
    expect(renewals).toHaveLength(1);
  });
});
