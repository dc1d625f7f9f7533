import { describe, expect, test } from "vitest";
import { HeldLease } from "#functions/apply/lease/held-lease.ts";
import { acquireLease } from "#functions/apply/lease/lease.ts";
import { WriteGate } from "#functions/apply/lease/write-gate.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { Table } from "#shared/ports.ts";
import { namespace } from "#test/support/cluster-fixture.ts";
import { silentLog } from "#test/support/planner-world.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

const freeze = { name: "inc-4711", by: "ana", at: "2026-11-20T08:00:00.000Z", reason: "INC-4711" };
const laterMs = 16_000;

const noCluster = { connect: () => Promise.reject(new Error("nobody is to connect")), distrust() {} };

async function begin() {
  const world = await new WorkerWorld(noCluster).begin();
  await world.assign("app", [namespace("app")]);
  const row = await world.sync("app");
  if (row === undefined) throw new Error("it was assigned");
  let reads = 0;
  const table = new Proxy(world.table, {
    get(inner, name: keyof Table) {
      if (name === "getMany") reads += 1;
      const member = inner[name] as unknown;
      return typeof member === "function" ? member.bind(inner) : member;
    },
  });
  const ports = { table, clock: world.clock, log: silentLog };
  const now = world.clock.now();
  const until = new Date(now.getTime() + 45_000);
  const given = await acquireLease("c1", { owner: "me", now, until }, world.table);
  if (given === undefined) throw new Error("nobody has it");
  const lease = new HeldLease(given, new Date(now.getTime() + 300_000), ports);
  const gate = new WriteGate(row, lease, ports);
  return {
    world,
    lease,
    gate,
    reads: () => reads,
    permit: () =>
      gate.permit(1).then(
        () => "may write",
        (error: unknown) => (error instanceof Error ? `${error.name}: ${error.message}` : error),
      ),
  };
}

describe("a permit to write", () => {
  test("a permit that was refused once is refused until the rows are read anew", async () => {
    const { world, permit, reads } = await begin();
    expect(await permit()).toBe("may write");
    await world.suspend("app");
    world.aheadMs += laterMs;
    const refused = "WriteWithheld: suspended by ana";
    expect([await permit(), await permit(), await permit()]).toEqual([refused, refused, refused]);
    expect(reads()).toBe(1 + 1);
    await world.setOwner("app", {});
    expect(await permit()).toBe(refused);
    world.aheadMs += laterMs;
    expect(await permit()).toBe("may write");
  });

  test("a permit is refused after a turn was refused", async () => {
    const { world, gate, permit } = await begin();
    await world.setFreezes({ freezes: [freeze] });
    expect(await gate.ask(1)).toMatchObject({ reason: "Frozen" });
    expect(await permit()).toBe("WriteWithheld: frozen by ana (INC-4711); starling thaw inc-4711");
  });

  test("a permit is refused after a failed read, however fresh the read before it", async () => {
    const { world, gate, permit } = await begin();
    expect(await permit()).toBe("may write");
    const broken = {
      ...keys.freezeState,
      type: "Freezes",
      schema: 1,
      version: 1,
      freezes: [{ name: "x" }],
      lifted: [],
    };
    await world.table.write([{ put: broken }]);
    expect(await gate.ask(1)).toMatchObject({ reason: "Unreadable" });
    expect(await permit()).toContain("WriteWithheld: ");
  });

  test("many permits that expire at once cost one read", async () => {
    const { world, permit, reads } = await begin();
    await world.suspend("app");
    const all = await Promise.all(Array.from({ length: 12 }, permit));
    expect(new Set(all)).toEqual(new Set(["WriteWithheld: suspended by ana"]));
    expect(reads()).toBe(1);
  });

  test("a permit is not given once the lease was released, though it would last", async () => {
    const { lease, permit } = await begin();
    expect(await permit()).toBe("may write");
    lease.stop();
    expect(await permit()).toContain("LeaseLost: the lease of CL#c1 with fence 1 was lost");
  });
});
