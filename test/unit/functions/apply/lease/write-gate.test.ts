/** The gate before every write to a cluster: its reads, their age, and the writes that it permits. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { HeldLease, LeaseLost } from "#functions/apply/lease/held-lease.ts";
import { acquireLease } from "#functions/apply/lease/lease.ts";
import { WriteGate, WriteWithheld } from "#functions/apply/lease/write-gate.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Table } from "#shared/ports.ts";
import { silentLog } from "#test/support/planner-world.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

const began = new Date("2026-11-21T09:00:00.000Z");
const freeze = { name: "inc-4711", by: "ana", at: "2026-11-20T08:00:00.000Z", reason: "INC-4711" };

let world: WorkerWorld;
let row: SyncRow;
let now: Date;
let lease: HeldLease;
/** The number of reads of rows. */
let reads: number;
/** Runs before each read of rows. */
let meanwhile: () => Promise<void>;

beforeEach(async () => {
  // Only a write renews the lease here.
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  world = await new WorkerWorld({ connect: () => Promise.reject(new Error("never")), distrust() {} }).begin();
  await world.assign("web", []);
  row = (await world.sync("web")) as SyncRow;
  now = began;
  reads = 0;
  meanwhile = async () => {};
});

afterEach(() => {
  lease.stop();
  vi.useRealTimers();
});

async function gateOf(): Promise<WriteGate> {
  const table: Table = new Proxy(world.table, {
    get(inner, name) {
      const member = (Reflect.get(inner, name) as (...args: unknown[]) => Promise<unknown>).bind(inner);
      return async (...args: unknown[]) => {
        if (name !== "getMany") return member(...args);
        reads += 1;
        await meanwhile();
        return member(...args);
      };
    },
  });
  const until = new Date(began.getTime() + 45_000);
  const given = await acquireLease("c1", { owner: "me", now, until }, world.table);
  if (given === undefined) throw new Error("somebody has the lease");
  const ports = { table, clock: { now: () => now }, log: silentLog };
  lease = new HeldLease(given, new Date(began.getTime() + 290_000), ports);
  return new WriteGate(row, lease, ports);
}

const pass = (seconds: number) => {
  now = new Date(now.getTime() + seconds * 1000);
};

describe("a write to a cluster", () => {
  test("a write is permitted by a read that is less than 15 seconds old", async () => {
    const gate = await gateOf();
    await gate.permit(1);
    expect(reads).toBe(1);
    pass(14.999);
    await gate.permit(1);
    expect(reads).toBe(1);
    pass(0.001);
    await gate.permit(1);
    expect(reads).toBe(2);
  });

  test("several simultaneous writes cause one read", async () => {
    const gate = await gateOf();
    await Promise.all([gate.permit(1), gate.permit(1), gate.read(), gate.ask(1)]);
    expect(reads).toBe(1);
    await gate.read();
    expect(reads).toBe(2);
  });

  test("the age of a read counts from its beginning", async () => {
    const gate = await gateOf();
    meanwhile = async () => pass(10);
    await gate.permit(1);
    pass(6);
    await gate.permit(1);
    expect(reads).toBe(2);
  });

  test.each<[string, () => Promise<unknown>, string]>([
    ["is suspended", () => world.suspend("web"), "Suspended"],
    ["is frozen", () => world.setFreezes({ freezes: [freeze] }), "Frozen"],
    ["was assigned something newer", () => world.assign("web", []), "Superseded"],
    ["was forgotten", () => world.table.write([{ delete: keys.sync("c1", "tests", "web") }]), "Superseded"],
  ])("a write is withheld from a Sync that %s, once the gate has read it", async (_what, change, reason) => {
    const gate = await gateOf();
    await gate.permit(1);
    await change();
    await gate.permit(1);
    pass(15);
    const withheld = gate.permit(1);
    await expect(withheld).rejects.toBeInstanceOf(WriteWithheld);
    await expect(withheld).rejects.toMatchObject({ why: { reason }, name: "WriteWithheld" });
    expect(await gate.ask(1)).toMatchObject({ reason });
    // The gate withholds the next write without another read.
    const before = reads;
    await expect(gate.permit(1)).rejects.toMatchObject({ why: { reason } });
    expect(reads).toBe(before);
  });

  test("a write is withheld while the freezes cannot be read, and permitted when they can", async () => {
    const gate = await gateOf();
    await world.setFreezes({});
    await world.table.update({ update: keys.freezeState, set: { freezes: "all of them" as never } });
    await expect(gate.read()).rejects.toMatchObject({ code: "FreezesUnreadable", retry: "transient" });
    expect(await gate.ask(1)).toMatchObject({ reason: "Unreadable" });
    await expect(gate.permit(1)).rejects.toMatchObject({ why: { reason: "Unreadable" } });
    await world.setFreezes({});
    await gate.permit(1);
    expect(await gate.ask(1)).toBeUndefined();
  });

  test("a defect in the code is thrown, and not reported as a withheld write", async () => {
    const gate = await gateOf();
    const defect = new TypeError("x is not a function");
    meanwhile = () => Promise.reject(defect);
    await expect(gate.ask(1)).rejects.toBe(defect);
    await expect(gate.permit(1)).rejects.toBe(defect);
  });

  test("an earlier read no longer counts after a read that failed", async () => {
    const gate = await gateOf();
    await gate.read();
    meanwhile = () => Promise.reject(new Error("the table is away"));
    await expect(gate.read()).rejects.toThrow("the table is away");
    await expect(gate.permit(1)).rejects.toThrow("the table is away");
  });

  test("a write under a lost lease is refused without a read", async () => {
    const gate = await gateOf();
    pass(31);
    await acquireLease("c1", { owner: "next", now: new Date(began.getTime() + 46_000), until: began }, world.table);
    await expect(gate.permit(1)).rejects.toBeInstanceOf(LeaseLost);
    expect(reads).toBe(0);
  });

  test("a write is refused when its read outlasts the lease", async () => {
    const gate = await gateOf();
    meanwhile = async () => {
      pass(46);
      await acquireLease("c1", { owner: "next", now, until: new Date(now.getTime() + 45_000) }, world.table);
    };
    await expect(gate.permit(1)).rejects.toBeInstanceOf(LeaseLost);
  });
});
