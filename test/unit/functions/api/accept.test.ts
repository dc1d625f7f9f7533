import { describe, expect, test } from "vitest";
import { defined } from "#shared/base/defined.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { ClusterRow } from "#shared/fleet/rows/object-rows.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { apiFixture, cluster, principal, source, syncGroup } from "#test/unit/functions/api/api-fixture.ts";
import { syncRow } from "#test/unit/functions/api/row-fixture.ts";

const path = "/v1/clusters/c1/accept";

async function withStranger(mismatch: string | undefined = "new-uid") {
  const api = apiFixture();
  await api.call("POST", "/v1/apply", {
    documents: [source("app"), cluster("c1", { env: "prod" }), syncGroup("shop", [{ name: "web", source: "app" }])],
  });
  const row = await api.table.get(keys.cluster("c1"));
  if (row === undefined) throw new Error("it was applied");
  const status = { uid: "old-uid", ...defined({ mismatch }), conditions: [] };
  const seen: ClusterRow = { ...row, version: row.version + 1, status };
  await api.table.write([{ put: seen }, { put: syncRow("c1", "shop.web") }]);
  api.takeMessages();
  api.setNow("2026-11-20T08:05:00Z");
  return api;
}

async function rowsOf(api: ReturnType<typeof apiFixture>) {
  const row = await api.table.get(keys.cluster("c1"));
  const fleet = await api.table.get(keys.fleet("c1"));
  const sync = await api.table.get(keys.sync("c1", "payments", "shop.web"));
  return { row, fleet, sync };
}

describe("the acceptance of another cluster under a registered name", () => {
  test("an acceptance asks for confirmation, then records who, when, why and which uid, and its Syncs start over", async () => {
    const api = await withStranger();
    const before = await rowsOf(api);
    const asked = await api.call("POST", path, { uid: "new-uid", reason: "rebuilt" });
    const message =
      "accepting the cluster of uid new-uid as Cluster c1, which had old-uid: 1 Sync begins anew there; nothing is deleted";
    expect(asked).toEqual({
      status: 409,
      body: { code: "ConfirmationRequired", message, consequences: [{ message, syncs: 1, clusters: 1 }] },
    });
    expect(await rowsOf(api)).toEqual(before);
    const done = await api.call("POST", path, { uid: "new-uid", reason: "rebuilt", confirm: true });
    expect(done).toMatchObject({ status: 200, body: { outcome: "configured", uid: "new-uid" } });
    const { row, fleet, sync } = await rowsOf(api);
    expect(row?.operations.accepted).toEqual({
      by: principal,
      at: "2026-11-20T08:05:00.000Z",
      reason: "rebuilt",
      number: 1,
      uid: "new-uid",
      forgotten: true,
    });
    // The API does not change what the worker wrote.
    expect(row?.status).toEqual(before.row?.status);
    expect(fleet?.uid).not.toBe(before.fleet?.uid);
    expect(sync).toMatchObject({ desired: { action: "orphan", attempt: 3 } });
    expect(sync).not.toHaveProperty("observed");
    expect(api.takeMessages()).toEqual([
      { to: "rollout", owner: { namespace: "payments", kind: "SyncGroup", name: "shop" }, clusters: [] },
    ]);
  });

  test("the confirmation counts the Syncs that start over, and says when no cluster answered under the name before", async () => {
    const api = await withStranger();
    const forgotten = syncRow("c1", "shop.old");
    await api.table.write([
      { put: syncRow("c1", "shop.api") },
      // A Sync that was forgotten before does not start over.
      { put: { ...forgotten, desired: { ...forgotten.desired, action: "orphan" } } as SyncRow },
      { update: keys.cluster("c1"), set: { status: { mismatch: "new-uid", conditions: [] } } },
    ]);
    const asked = await api.call("POST", path, { uid: "new-uid" });
    expect(asked.body.message).toContain("as Cluster c1, which had none: 2 Syncs begin anew there");
    expect(asked.body.consequences).toMatchObject([{ syncs: 2, clusters: 1 }]);
  });

  test("an acceptance that is repeated changes nothing, and later assignments stay", async () => {
    const api = await withStranger();
    await api.call("POST", path, { uid: "new-uid", confirm: true });
    await api.table.write([{ put: { ...syncRow("c1", "shop.web"), version: 9 } }]);
    const rows = api.table.all();
    api.takeMessages();
    for (const confirm of [true, false]) {
      const again = await api.call("POST", path, { uid: "new-uid", confirm });
      expect(again).toMatchObject({ status: 200, body: { outcome: "unchanged" } });
    }
    expect(api.table.all()).toEqual(rows);
    expect(api.takeMessages()).toEqual([]);
  });

  test("an acceptance that broke off is completed by the next request", async () => {
    const api = await withStranger();
    const row = await api.table.get(keys.cluster("c1"));
    if (row === undefined) throw new Error("it is there");
    const accepted = { by: principal, at: "2026-11-20T08:04:00.000Z", number: 1, uid: "new-uid" };
    const half: ClusterRow = { ...row, version: row.version + 1, operations: { accepted } };
    await api.table.write([{ put: half }]);
    const uid = (await rowsOf(api)).fleet?.uid;
    await api.call("POST", path, { uid: "new-uid", confirm: true });
    const after = await rowsOf(api);
    expect(after.row?.operations.accepted).toEqual({ ...accepted, forgotten: true });
    expect(after.sync?.desired.action).toBe("orphan");
    expect(after.fleet?.uid).not.toBe(uid);
  });

  test.each([
    [
      "another uid than the one that answered",
      "new-uid",
      "third-uid",
      "the cluster that answers as Cluster c1 has the uid new-uid",
    ],
    ["a uid that has not answered", undefined, "new-uid", "no other cluster than the one of uid old-uid has answered"],
  ])("an acceptance of %s is refused", async (_what, seen, uid, message) => {
    const api = await withStranger();
    if (seen === undefined) {
      const { row } = await rowsOf(api);
      if (row === undefined) throw new Error("it is there");
      const { mismatch: _none, ...status } = row.status;
      const unseen: ClusterRow = { ...row, version: row.version + 1, status };
      await api.table.write([{ put: unseen }]);
    }
    const before = api.table.all();
    for (const confirm of [true, false]) {
      const answer = await api.call("POST", path, { uid, confirm });
      expect(answer).toMatchObject({ status: 409, body: { code: "IdentityChanged" } });
      expect(answer.body.seen).toBe(seen);
      expect(answer.body.message).toContain(message);
    }
    expect(api.table.all()).toEqual(before);
  });

  test("an acceptance of an unknown Cluster, or without a uid, is refused", async () => {
    const api = await withStranger();
    expect((await api.call("POST", "/v1/clusters/c9/accept", { uid: "new-uid" })).status).toBe(404);
    expect((await api.call("POST", path, {})).status).toBe(400);
  });

  test("an accepted cluster stays accepted when its Cluster is applied again", async () => {
    const api = await withStranger();
    await api.call("POST", path, { uid: "new-uid", confirm: true });
    const uid = (await rowsOf(api)).fleet?.uid;
    await api.call("POST", "/v1/apply", { documents: [cluster("c1", { env: "prod", ring: "canary" })] });
    const { fleet, row } = await rowsOf(api);
    expect(fleet).toMatchObject({ uid, labels: { ring: "canary" } });
    expect(row?.operations.accepted).toMatchObject({ uid: "new-uid" });
  });
});
