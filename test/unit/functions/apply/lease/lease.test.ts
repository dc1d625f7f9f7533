/** One worker at a time on a cluster: the row of its lease before and after each call. */
import { beforeEach, describe, expect, test } from "vitest";
import {
  abandonLease,
  acquireInCommonLane,
  acquireLease,
  type Lease,
  leaseCheck,
  leaseEnding,
  leaseNote,
  leaseRelease,
  renewLease,
  reportFailure,
} from "#functions/apply/lease/lease.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { Begun, LeaseRow } from "#shared/fleet/rows/lease-row.ts";
import { nextRoutine } from "#shared/fleet/rows/routine.ts";
import type { Table } from "#shared/ports.ts";
import { MemoryTable } from "#test/support/memory-table.ts";

const key = keys.lease("c1");
const began = new Date("2026-03-01T10:00:00.000Z");
const secondsLater = (seconds: number) => new Date(began.getTime() + seconds * 1000);
const begun: Begun = { sync: "shop/web", desired: "sha256:aaa", alone: false };
const away = new Error("the table is away");

let table: MemoryTable;
beforeEach(() => {
  table = new MemoryTable();
});

const wish = (owner: string, now = began) => ({ owner, now, until: new Date(now.getTime() + 45_000) });
const stored = async () => (await table.get(key)) as LeaseRow | undefined;

async function taken(owner: string, now = began): Promise<Lease> {
  const lease = await acquireLease("c1", wish(owner, now), table);
  if (lease === undefined) throw new Error(`${owner} did not get it`);
  return lease;
}

/** The table; something happens right before the n-th update. */
function meanwhile(at: number, happen: () => Promise<unknown>): Table {
  let updates = 0;
  return new Proxy(table, {
    get(inner, name: keyof Table) {
      const member = (inner[name] as (...args: unknown[]) => unknown).bind(inner);
      if (name !== "update") return member;
      return async (...args: unknown[]) => {
        if (++updates === at) await happen();
        return member(...args);
      };
    },
  });
}

/** The n-th update fails for a reason outside of the row. */
const failingAt = (at: number) => meanwhile(at, () => Promise.reject(away));

describe("the lease of a cluster", () => {
  test("a free lease is acquired with a higher fence than all before it", async () => {
    expect(await taken("one")).toEqual({
      key,
      owner: "one",
      fence: 1,
      desired: 0,
      until: secondsLater(45),
      routine: {},
    });
    expect(await stored()).toEqual({
      ...key,
      type: "Lease",
      schema: 2,
      version: 1,
      owner: "one",
      leaseUntil: secondsLater(45).toISOString(),
      fence: 1,
      desired: 0,
    });
    await table.write([leaseRelease(await taken("one"), {})]);
    expect(await taken("next", secondsLater(1))).toMatchObject({ owner: "next", fence: 3, desired: 0 });
  });

  test.each([
    ["before its end is not acquired", 44, false],
    ["at its very end is not acquired", 45, false],
    ["after its end is acquired", 45.001, true],
  ])("a lease of another worker that is asked for %s", async (_when, seconds, free) => {
    await taken("one");
    const next = await acquireLease("c1", wish("next", secondsLater(seconds)), table);
    expect(next?.owner).toBe(free ? "next" : undefined);
    expect(await stored()).toMatchObject({ owner: free ? "next" : "one", fence: free ? 2 : 1, desired: 1 });
  });

  test("a worker that finds the lease held records its request, and writes nothing else", async () => {
    await taken("one");
    for (const owner of ["second", "third"]) {
      expect(await acquireLease("c1", wish(owner), failingAt(3))).toBeUndefined();
    }
    expect(await stored()).toMatchObject({ owner: "one", desired: 2 });
  });

  test.each<[string, (lease: Lease) => Promise<unknown>, Lease["death"]]>([
    ["was released records none", (lease) => table.write([leaseRelease(lease, {})]), undefined],
    ["was given up records none", (lease) => abandonLease(lease, {}, table), undefined],
    ["was never released records one", async () => {}, {}],
    ["has a note records the Sync", (lease) => table.write([leaseNote(lease, begun)]), { begun }],
    ["belongs to a worker that reported its failure records none", (lease) => reportFailure(lease, table), undefined],
  ])("the next holder learns of a death when it should: a lease that %s", async (_what, end, death) => {
    const lease = await taken("one");
    await end(lease);
    expect((await taken("next", secondsLater(60))).death).toEqual(death);
    for (const name of ["begun", "failed"]) expect(await stored()).not.toHaveProperty(name);
  });

  test("a lease that a newer version holds is asked for, and acquired when it has ended", async () => {
    await taken("newer");
    const makeNewer = () => table.update({ update: key, set: { schema: 4 } }).catch(() => {});
    await makeNewer();
    expect(await acquireLease("c1", wish("older"), table)).toBeUndefined();
    await makeNewer();
    expect(await taken("older", secondsLater(60))).toMatchObject({ fence: 2 });
    expect(await stored()).toMatchObject({ schema: 2, owner: "older" });
  });

  test("a lease that is given up right before the request records no death", async () => {
    const lease = await taken("one");
    const restored = meanwhile(2, () => abandonLease(lease, {}, table));
    const next = await acquireLease("c1", wish("next", secondsLater(60)), restored);
    expect(next).toEqual({ key, owner: "next", fence: 2, desired: 1, until: secondsLater(105), routine: {} });
  });

  test("only one of two workers acquires an ended lease", async () => {
    await taken("one");
    const rival = meanwhile(3, () => taken("second", secondsLater(60)));
    expect(await acquireLease("c1", wish("third", secondsLater(60)), rival)).toBeUndefined();
    expect(await stored()).toMatchObject({ owner: "second", fence: 2, desired: 2 });
  });

  test("a released lease has no owner, no end and no note", async () => {
    const renewed = await renewLease(await taken("one"), { until: secondsLater(90), begun }, table);
    if (renewed === undefined) throw new Error("it was lost");
    expect(await stored()).toMatchObject({ begun, dueKey: `${secondsLater(95).toISOString()}#CL#c1|LEASE` });
    await table.write([leaseRelease(renewed, {})]);
    expect(await stored()).toEqual({ ...key, type: "Lease", schema: 2, version: 1, fence: 1, desired: 0 });
  });

  test("a released lease is due for the routine check, and keeps that time when it is acquired", async () => {
    const routine = { 600: began.toISOString() };
    const next = nextRoutine("c1", routine);
    await table.write([leaseRelease(await taken("one"), routine)]);
    const free = { routine, dueKey: `${next}#CL#c1|LEASE` };
    expect(await stored()).toMatchObject(free);
    // The tick does this.
    await table.update({ update: key, add: { dispatches: 1 } });
    const lease = await taken("next", secondsLater(700));
    expect(lease.routine).toEqual(routine);
    expect(await stored()).toMatchObject({ ...free, dispatches: 1 });
    await abandonLease(lease, routine, table);
    expect(await stored()).toMatchObject(free);
    for (const name of ["owner", "leaseUntil", "dispatches"]) expect(await stored()).not.toHaveProperty(name);
    await table.write([leaseRelease(await taken("last", secondsLater(800)), {})]);
    for (const name of ["routine", "dueKey", "dueShard"]) expect(await stored()).not.toHaveProperty(name);
  });

  test("a lease under which a Sync became idle is due at its end, until it is released", async () => {
    await table.write([leaseEnding(await taken("one"))]);
    expect(await stored()).toMatchObject({ dueKey: `${secondsLater(50).toISOString()}#CL#c1|LEASE` });
  });

  test("a lease that another worker asks for cannot be released, but can be given up", async () => {
    const lease = await taken("one");
    await acquireLease("c1", wish("next"), table);
    await expect(table.write([leaseRelease(lease, {})])).rejects.toMatchObject({ code: "Conflict" });
    expect((await stored())?.owner).toBe("one");
    await abandonLease(lease, {}, table);
    expect(await stored()).toEqual({ ...key, type: "Lease", schema: 2, version: 1, fence: 1, desired: 1 });
  });

  test("a renewal extends the lease, counts the requests, and clears an old note when it has none", async () => {
    const lease = await taken("one");
    await table.write([leaseNote(lease, begun)]);
    await table.write([leaseCheck(lease)]);
    await acquireLease("c1", wish("next"), table);
    expect(await renewLease(lease, { until: secondsLater(60), begun: undefined }, table)).toEqual({
      ...lease,
      desired: 1,
      until: secondsLater(60),
    });
    expect(await stored()).not.toHaveProperty("begun");
    expect(await acquireLease("c1", wish("next", secondsLater(59)), table)).toBeUndefined();
  });

  test("a worker that lost its lease can neither write under it, renew it, release it, nor give it up", async () => {
    const lease = await taken("one");
    await taken("next", secondsLater(60));
    const theirs = await stored();
    for (const write of [leaseCheck(lease), leaseNote(lease, begun), leaseRelease({ ...lease, desired: 1 }, {})]) {
      await expect(table.write([write])).rejects.toMatchObject({ code: "Conflict" });
    }
    await expect(reportFailure(lease, table)).rejects.toMatchObject({ code: "Conflict" });
    expect(await renewLease(lease, { until: secondsLater(120), begun }, table)).toBeUndefined();
    await abandonLease(lease, {}, table);
    expect(await stored()).toEqual(theirs);
  });

  test.each<[string, (lease: Lease) => Promise<unknown>]>([
    ["is acquired", () => acquireLease("c1", wish("next", secondsLater(60)), failingAt(1))],
    ["is asked for", () => acquireLease("c1", wish("next", secondsLater(60)), failingAt(2))],
    ["is acquired after a death", () => acquireLease("c1", wish("next", secondsLater(60)), failingAt(3))],
    ["is renewed", (lease) => renewLease(lease, { until: secondsLater(60), begun }, failingAt(1))],
    ["is given up", (lease) => abandonLease(lease, {}, failingAt(1))],
  ])("a failure of the table is an error when a lease %s", async (_when, call) => {
    const lease = await taken("one");
    await expect(call(lease)).rejects.toBe(away);
  });
});

describe("the lease of a slow cluster", () => {
  const use = { since: began.toISOString(), seconds: 60, slowUntil: secondsLater(600).toISOString() };

  test("a worker of the common lane leaves a slow cluster's lease as it was, and a worker of the slow lane acquires it", async () => {
    const lease = await taken("one");
    await table.write([leaseRelease({ ...lease, use }, { 600: began.toISOString() })]);
    const before = await stored();
    expect(await acquireInCommonLane("c1", wish("common", secondsLater(1)), table)).toBe("slow");
    expect({ ...(await stored()), fence: 0, version: 0 }).toEqual({ ...before, fence: 0, version: 0 });
    expect(await acquireLease("c1", wish("slow", secondsLater(2)), table)).toMatchObject({ owner: "slow", use });
  });

  test("a held lease of a slow cluster is asked for, and not handed to the slow lane", async () => {
    const lease = await taken("one");
    await table.write([leaseRelease({ ...lease, use }, {})]);
    const holder = await taken("slow", secondsLater(1));
    expect(await acquireInCommonLane("c1", wish("common", secondsLater(2)), table)).toBeUndefined();
    expect(await stored()).toMatchObject({ owner: "slow", desired: holder.desired + 1 });
  });

  test("a worker of the slow lane learns where the last holder died", async () => {
    const lease = await taken("one");
    await table.write([leaseRelease({ ...lease, use }, {})]);
    const holder = await taken("slow", secondsLater(1));
    await table.update(leaseNote(holder, begun));
    expect(await acquireInCommonLane("c1", wish("common", secondsLater(60)), table)).toBe("slow");
    expect(await acquireLease("c1", wish("next", secondsLater(61)), table)).toMatchObject({ death: { begun } });
  });

  test("the common lane gets the cluster back when its time in the slow lane is over", async () => {
    const lease = await taken("one");
    await table.write([leaseRelease({ ...lease, use }, {})]);
    expect(await acquireInCommonLane("c1", wish("common", secondsLater(600)), table)).toMatchObject({
      owner: "common",
    });
  });
});
