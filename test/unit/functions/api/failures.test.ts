/** The API's answers when the table fails, or when another writer writes at the same time. */

import { describe, expect, test } from "vitest";
import { apiHandler } from "#functions/api/http/api-handler.ts";
import { otherCode } from "#shared/base/error-codes.ts";
import { ConflictError, StarlingError } from "#shared/base/errors.ts";
import { dueAttributes, later } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { Row } from "#shared/fleet/rows/row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Table, Write } from "#shared/ports.ts";
import { healthyInstallation } from "#test/support/healthy-installation.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { MemorySender } from "#test/support/memory-sender.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { silentLog } from "#test/support/planner-world.ts";
import { refusingWrites } from "#test/support/refusing-writes.ts";
import { apiFixture, cluster, httpEvent, source, sync, syncGroup } from "#test/unit/functions/api/api-fixture.ts";
import { syncRow } from "#test/unit/functions/api/row-fixture.ts";

/** An installation with a fleet, whose table fails as the test says. */
async function withFailures() {
  const table = new MemoryTable();
  let failure: (writes: readonly Write[]) => Error | undefined = () => undefined;
  const api = apiFixture(
    table,
    refusingWrites(table, (writes) => failure(writes)),
  );
  await api.call("POST", "/v1/apply", {
    documents: [source("app"), cluster("c1"), syncGroup("shop", [{ name: "web", source: "app" }])],
  });
  await table.write([{ put: syncRow("c1", "shop.web") }]);
  return { api, table, fail: (how: typeof failure) => (failure = how) };
}

/** Fails the first writes that touch such a row, as many as `count`. */
function first(count: number, error: Error, touches: (write: Write) => boolean = () => true) {
  let left = count;
  return (writes: readonly Write[]) => (writes.some(touches) && left-- > 0 ? error : undefined);
}

const conflict = new ConflictError("somebody else wrote it");
const busy = new StarlingError("DynamoDB kept refusing", { code: "TableBusy", retry: "transient" });
const surprise = new Error("a secret-looking detail");
const orphan = "/v1/clusters/c1?cascade=orphan&confirm=true";
const isSync = (write: Write) => "put" in write && write.put.sk.startsWith("SYNC#");
const isLease = (write: Write) => "put" in write && write.put.sk === "LEASE";

describe("an answer of the API", () => {
  test("an answer is JSON, and its content type says so", async () => {
    const ports = {
      table: new MemoryTable(),
      blobs: new MemoryBlobStore(),
      sender: new MemorySender(),
      clock: { now: () => new Date() },
      ids: { unique: () => "id" },
      installation: "i",
      ...healthyInstallation,
      log: silentLog,
    };
    const answer = await apiHandler(ports)(httpEvent("GET", "/v1/version"), {});
    expect(answer.headers).toEqual({
      "content-type": "application/json",
      "x-correlation-id": expect.stringMatching(/^api-\d{8}T\d{6}Z-[0-9a-f]{8}$/),
    });
  });

  test("an answer asks to try again when the time of the invocation is over", async () => {
    const table = new MemoryTable();
    const stuck: Table = { ...refusingWrites(table, () => undefined), getMany: () => new Promise(() => {}) };
    const ports = { table: stuck, blobs: new MemoryBlobStore(), sender: new MemorySender(), installation: "i" };
    const handler = apiHandler({
      ...ports,
      clock: { now: () => new Date() },
      ids: { unique: () => "id" },
      ...healthyInstallation,
      log: silentLog,
    });
    const event = httpEvent("GET", "/v1/namespaces/payments/sources/app");
    const answer = await handler(event, { getRemainingTimeInMillis: () => 20 });
    expect({ status: answer.statusCode, ...JSON.parse(answer.body) }).toEqual({
      status: 503,
      code: "OutOfTime",
      message: "the request took too long; it may be done, partly done or not done; try again",
    });
  });

  test("an answer asks to try again after a transient failure, and hides an unexpected error, which is logged", async () => {
    const { api, fail } = await withFailures();
    const suspend = () => api.call("POST", "/v1/namespaces/payments/syncgroups/shop/suspend", {});
    fail(first(1, busy));
    expect(await suspend()).toEqual({
      status: 503,
      body: { code: "TableBusy", message: "DynamoDB kept refusing; try again" },
    });
    fail(first(1, surprise));
    const { status, body } = await suspend();
    expect({ status, code: body.code }).toEqual({ status: 500, code: "Internal" });
    expect(body.message).not.toContain("secret-looking");
    expect(api.log.at(-1)).toMatchObject({ message: "request failed", code: "Internal", error: surprise.message });
  });
});

test.each([
  [
    "that is permanent",
    new StarlingError("DynamoDB refused: no grant", { code: otherCode("TableDenied"), retry: "permanent" }),
  ],
  ["of an unknown kind", surprise],
])("an answer does not ask to try again after a failure %s", async (_what, error) => {
  const { api, fail } = await withFailures();
  fail(first(1, error));
  const answer = await api.call("POST", "/v1/namespaces/payments/syncgroups/shop/suspend", {});
  expect(answer).toMatchObject({ status: 500, body: { code: "Internal" } });
});

describe("a suspend request", () => {
  test("a suspend is tried six times when others write the row, and once after any other failure", async () => {
    for (const [error, times, status, code] of [
      [conflict, 5, 200, undefined],
      [conflict, 6, 409, "Conflict"],
      [busy, 1, 503, "TableBusy"],
    ] as const) {
      const { api, table, fail } = await withFailures();
      const before = table.all();
      fail(first(times, error));
      const answer = await api.call("POST", "/v1/namespaces/payments/syncgroups/shop/suspend", {});
      expect({ status: answer.status, code: answer.body.code }).toEqual({ status, code });
      if (status !== 200) expect(table.all()).toEqual(before);
    }
  });

  test("a suspend raises the version of the row, and a later refusal names no reason where none was given", async () => {
    const { api, table } = await withFailures();
    const key = keys.object("payments", "SyncGroup", "shop");
    const path = "/v1/namespaces/payments/syncgroups/shop";
    const before = (await table.get(key))?.version ?? 0;
    await api.call("POST", `${path}/suspend`, {});
    expect((await table.get(key))?.version).toBe(before + 1);
    const { body } = await api.call("POST", `${path}/reconcile`, {});
    expect(body.message).toMatch(/ at 2026-11-20T08:00:00\.000Z\); resume it first$/);
  });
});

describe("an apply of many objects", () => {
  const documents = [
    syncGroup("late", [{ name: "web", source: "app" }]),
    ...Array.from({ length: 20 }, (_, index) => cluster(`c${index + 1}`, { env: "prod" })),
    source("early"),
  ];
  const kindsIn = (log: readonly Readonly<Record<string, unknown>>[]) =>
    log.filter(({ verb }) => verb === "apply").map(({ kind, name }) => `${kind} ${name}`);

  test("an apply writes Sources first, then Clusters, then groups and Syncs, eight objects at once", async () => {
    const table = new MemoryTable();
    const writes = { now: 0, most: 0 };
    const slow: Table = {
      ...refusingWrites(table, () => undefined),
      async write(given) {
        writes.now += 1;
        writes.most = Math.max(writes.most, writes.now);
        await table.write(given).finally(() => {
          writes.now -= 1;
        });
      },
    };
    const api = apiFixture(table, slow);
    expect(await api.call("POST", "/v1/apply", { documents })).toMatchObject({ status: 200 });
    const clusters = Array.from({ length: 20 }, (_, index) => `Cluster c${index + 1}`);
    const written = kindsIn(api.log);
    expect([written.at(0), written.at(-1)]).toEqual(["Source early", "SyncGroup late"]);
    expect(written.slice(1, -1).sort()).toEqual(clusters.sort());
    expect(writes.most).toBe(8);
  });

  test("an apply ends with the kind in which a write failed, and notifies about what was written", async () => {
    const { api, table, fail } = await withFailures();
    fail(first(1, busy, (write) => "put" in write && write.put.pk === "CL#c9"));
    api.takeMessages();
    expect(await api.call("POST", "/v1/apply", { documents })).toMatchObject({ status: 503 });
    expect(await table.get(keys.object("payments", "Source", "early"))).toBeDefined();
    expect(await table.get(keys.object("payments", "SyncGroup", "late"))).toBeUndefined();
    expect(api.takeMessages()).toEqual([
      { to: "resolve", source: { namespace: "payments", name: "early" } },
      { to: "rollout", owner: { namespace: "payments", kind: "SyncGroup", name: "shop" }, clusters: [] },
    ]);
    expect(await api.call("POST", "/v1/apply", { documents })).toMatchObject({ status: 200 });
    expect(await table.get(keys.object("payments", "SyncGroup", "late"))).toBeDefined();
  });
});

describe("a prune request", () => {
  test("a prune is tried six times when others write the row, and once after any other failure", async () => {
    const old = { id: { group: "", kind: "ConfigMap", namespace: "shop", name: "old" }, uid: "uid-old", member: true };
    for (const [error, times, status] of [
      [conflict, 5, 200],
      [conflict, 6, 409],
      [busy, 1, 503],
    ] as const) {
      const { api, table, fail } = await withFailures();
      const row = syncRow("c1", "shop.web");
      await table.write([{ put: { ...row, observed: { ...row.observed, foreign: [old] } } as SyncRow }]);
      fail(first(times, error, isSync));
      const body = { cluster: "c1", uids: ["uid-old"], confirm: true };
      const answer = await api.call("POST", "/v1/namespaces/payments/syncs/shop.web/prune", body);
      expect(answer.status).toBe(status);
      const after = await table.get(keys.sync("c1", "payments", "shop.web"));
      expect(after?.operations?.prune?.number).toBe(status === 200 ? 1 : undefined);
    }
  });
});

describe("a deletion request", () => {
  test("a deletion of a Cluster forgets more Syncs than fit into one transaction", async () => {
    const { api, table } = await withFailures();
    const rows = Array.from({ length: 130 }, (_, index) => ({ put: syncRow("c1", `shop.t${index}`) }));
    await table.write(rows.slice(0, 100));
    await table.write(rows.slice(100));
    expect(await api.call("DELETE", orphan)).toMatchObject({ status: 200 });
    const left = table.all().filter((row): row is SyncRow => row.type === "SyncOnCluster");
    expect(left).toHaveLength(131);
    expect(left.filter(({ desired }) => desired.action !== "orphan")).toEqual([]);
  });

  test("a deletion of a Cluster dismisses its worker, and keeps the fence and the end of the lease", async () => {
    const { api, table } = await withFailures();
    const lease = {
      type: "Lease",
      schema: 1,
      version: 7,
      fence: 3,
      owner: "worker",
      leaseUntil: "2026-11-20T09:00:00Z",
    };
    await table.write([{ put: { ...keys.lease("c1"), ...lease } }]);
    expect(await api.call("DELETE", orphan)).toMatchObject({ status: 200 });
    expect(await table.get(keys.lease("c1"))).toEqual({
      ...keys.lease("c1"),
      type: "Lease",
      schema: 1,
      version: 8,
      fence: 3,
      // The worker may write to the cluster until then, and no other worker begins before.
      leaseUntil: lease.leaseUntil,
      ...dueAttributes(keys.lease("c1"), lease.leaseUntil),
    });
  });

  test("a deletion keeps the lease for at least the 15 seconds for which a dismissed worker trusts its last read", async () => {
    const { api, table } = await withFailures();
    const now = "2026-11-20T08:00:00.000Z";
    const lease = { type: "Lease", schema: 1, version: 7, fence: 3, owner: "worker", leaseUntil: later(now, 1) };
    await table.write([{ put: { ...keys.lease("c1"), ...lease } }]);
    expect(await api.call("DELETE", orphan)).toMatchObject({ status: 200 });
    const left = await table.get(keys.lease("c1"));
    expect([left?.owner, left?.leaseUntil]).toEqual([undefined, later(now, 15)]);
  });

  test("a deletion goes on when the lease changes hands meanwhile, and fails when the lease cannot be written", async () => {
    for (const [error, status] of [
      [conflict, 200],
      [busy, 503],
    ] as const) {
      const { api, table, fail } = await withFailures();
      const lease: Row & { owner: string } = {
        ...keys.lease("c1"),
        type: "Lease",
        schema: 1,
        version: 7,
        owner: "worker",
      };
      await table.write([{ put: lease }]);
      fail(first(1, error, isLease));
      expect((await api.call("DELETE", orphan)).status).toBe(status);
    }
  });

  test("a deletion tries ten times to forget a Sync that others write, and once after any other failure", async () => {
    const action = async (table: MemoryTable) =>
      (await table.get(keys.sync("c1", "payments", "shop.web")))?.desired.action;
    for (const [error, times, status, expected] of [
      [conflict, 9, 200, "orphan"],
      [conflict, 10, 409, "apply"],
      [busy, 1, 503, "apply"],
    ] as const) {
      const { api, table, fail } = await withFailures();
      fail(first(times, error, isSync));
      expect((await api.call("DELETE", orphan)).status).toBe(status);
      expect(await action(table)).toBe(expected);
      // The request broke off after the Cluster's own row was deleted: the next request completes it.
      if (status !== 200) {
        fail(() => undefined);
        expect(await api.call("DELETE", orphan)).toMatchObject({ status: 200 });
        expect(await action(table)).toBe("orphan");
      }
    }
  });

  test("a deletion is refused when another writer wrote the row meanwhile, and fails as the table fails", async () => {
    for (const [error, status] of [
      [conflict, 409],
      [busy, 503],
    ] as const) {
      const { api, table, fail } = await withFailures();
      fail(first(1, error, (write) => "delete" in write));
      const answer = await api.call("DELETE", orphan);
      expect(answer.status).toBe(status);
      if (status === 409) {
        expect(answer.body.message).toBe("Cluster c1 was written by somebody else just now; look at it and try again");
      }
      expect(await table.get(keys.cluster("c1"))).toBeDefined();
    }
  });

  test("a refused deletion names ten of the objects in its way, and counts them in singular and plural", async () => {
    const { api, table } = await withFailures();
    const one = await api.call("DELETE", "/v1/clusters/c1?cascade=orphan");
    const message = "deleting Cluster c1 forgets 1 Sync; the objects in the cluster stay";
    expect(one.body).toMatchObject({ message, consequences: [{ message, syncs: 1, clusters: 1 }] });
    await table.write(Array.from({ length: 9 }, (_, index) => ({ put: syncRow("c1", `shop.t${index}`) })));
    const ten = await api.call("DELETE", "/v1/clusters/c1?confirm=true");
    expect(ten.body.message).toMatch(
      /^Cluster c1 has 10 Syncs assigned \((payments\/shop\.\w+, ){9}payments\/shop\.web\)/,
    );
    await table.write([{ put: syncRow("c1", "shop.more") }]);
    const eleven = await api.call("DELETE", "/v1/clusters/c1?confirm=true");
    expect(eleven.body.message).toMatch(/^Cluster c1 has 11 Syncs assigned \(([\w./]+, ){9}[\w./]+ and more\)/);
    const syncs = Array.from({ length: 20 }, (_, index) => sync(`s${index}`, { cluster: "c1", source: "app" }));
    await api.call("POST", "/v1/apply", { documents: syncs });
    const used = await api.call("DELETE", "/v1/namespaces/payments/sources/app?confirm=true");
    expect(used.body).toMatchObject({ code: "InUse", message: expect.stringContaining(" and more; point them") });
    expect(used.body.users).toHaveLength(11);
    await api.call("DELETE", "/v1/namespaces/payments/syncs/s0?confirm=true");
  });
});
