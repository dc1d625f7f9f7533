import { describe, expect, test } from "vitest";
import { dueAtOf } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { newestRowSchema, rowSchema } from "#shared/fleet/rows/row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { apiFixture, cluster, principal, source, sync, syncGroup } from "#test/unit/functions/api/api-fixture.ts";
import { syncRow } from "#test/unit/functions/api/row-fixture.ts";

const group = { namespace: "payments", kind: "SyncGroup", name: "shop" } as const;
const groupPath = "/v1/namespaces/payments/syncgroups/shop";
const sourcePath = "/v1/namespaces/payments/sources/app";

async function withFleet() {
  const api = apiFixture();
  await api.call("POST", "/v1/apply", {
    documents: [
      source("app"),
      cluster("c1", { env: "prod" }),
      syncGroup("shop", [{ name: "web", source: "app" }]),
      sync("extra", { cluster: "c1", source: "app" }),
    ],
  });
  api.takeMessages();
  api.setNow("2026-11-20T08:05:00Z");
  return api;
}

describe("suspend and resume by the API", () => {
  test("a suspend records who, when and why, and wakes the planner", async () => {
    const api = await withFleet();
    const answer = await api.call("POST", `${groupPath}/suspend`, { reason: "INC-4711" });
    expect(answer).toMatchObject({ status: 200, body: { outcome: "configured" } });
    const row = await api.table.get(keys.object("payments", "SyncGroup", "shop"));
    expect(row?.operations).toEqual({
      suspended: { by: principal, at: "2026-11-20T08:05:00.000Z", reason: "INC-4711", number: 1 },
    });
    expect(row?.generation).toBe(1);
    expect(api.takeMessages()).toEqual([{ to: "rollout", owner: group, clusters: [] }]);
  });

  test("a suspend that is repeated changes nothing", async () => {
    const api = await withFleet();
    await api.call("POST", `${groupPath}/suspend`, { reason: "INC-4711" });
    api.takeMessages();
    const rows = api.table.all();
    for (const body of [{ reason: "INC-4711" }, {}]) {
      const again = await api.call("POST", `${groupPath}/suspend`, body);
      expect(again.body).toMatchObject({ outcome: "unchanged", operations: { suspended: { reason: "INC-4711" } } });
    }
    expect(api.table.all()).toEqual(rows);
    expect(api.takeMessages()).toEqual([]);
  });

  test("a suspend with another reason keeps it beside the first, once", async () => {
    const api = await withFleet();
    await api.call("POST", `${groupPath}/suspend`, {});
    api.setNow("2026-11-20T08:06:00Z");
    const suspended = {
      by: principal,
      at: "2026-11-20T08:05:00.000Z",
      number: 1,
      again: [{ by: principal, at: "2026-11-20T08:06:00.000Z", reason: "INC-4712", number: 2 }],
    };
    const again = await api.call("POST", `${groupPath}/suspend`, { reason: "INC-4712" });
    expect(again.body).toEqual({ outcome: "configured", operations: { suspended }, warnings: [] });
    const third = await api.call("POST", `${groupPath}/suspend`, { reason: "INC-4712" });
    expect(third.body).toMatchObject({ outcome: "unchanged", operations: { suspended } });
    for (let more = 0; more < 20; more++) await api.call("POST", `${groupPath}/suspend`, { reason: `more ${more}` });
    const row = await api.table.get(keys.object("payments", "SyncGroup", "shop"));
    expect(row?.operations.suspended).toMatchObject({ by: principal, at: "2026-11-20T08:05:00.000Z", number: 1 });
    expect(row?.operations.suspended?.again?.map(({ reason }) => reason).at(-1)).toBe("more 19");
    expect(row?.operations.suspended?.again).toHaveLength(10);
    const resumed = await api.call("POST", `${groupPath}/resume`, {});
    expect(resumed.body.operations).toEqual({
      resumed: { by: principal, at: "2026-11-20T08:06:00.000Z", number: 23, stood: 60 },
    });
  });

  test("a suspend with an end keeps the later end of two, and is over at the end", async () => {
    const api = await withFleet();
    const suspend = async (until?: string) => {
      const { body } = await api.call("POST", `${groupPath}/suspend`, { reason: "INC-1", until });
      return [body.outcome, body.operations.suspended.until];
    };
    const [ten, twelve] = ["2026-11-20T10:00:00.000Z", "2026-11-20T12:00:00.000Z"];
    expect(await suspend("2026-11-20T10:00:00Z")).toEqual(["configured", ten]);
    expect(await suspend("2026-11-20T09:00:00Z")).toEqual(["unchanged", ten]);
    expect(await suspend("2026-11-20T12:00:00Z")).toEqual(["configured", twelve]);
    const { body: said } = await api.call("GET", groupPath);
    expect(said.operations.suspended).toMatchObject({ reason: "INC-1", until: twelve });
    expect((await api.call("POST", `${groupPath}/reconcile`, {})).body.message).toContain(`until ${twelve}`);
    api.setNow("2026-11-20T12:00:00Z");
    expect((await api.call("GET", groupPath)).body.operations).toMatchObject({ resumed: { at: twelve } });
    expect((await api.call("GET", groupPath)).body.operations.suspended).toBeUndefined();
    expect((await api.call("POST", `${groupPath}/resume`, {})).body.outcome).toBe("unchanged");
    expect((await api.call("POST", `${groupPath}/reconcile`, {})).status).toBe(200);
    expect(await suspend("2026-11-20T13:00:00Z")).toEqual(["configured", "2026-11-20T13:00:00.000Z"]);
    expect(await suspend()).toEqual(["configured", undefined]);
    expect(await suspend("2026-11-20T14:00:00Z")).toEqual(["unchanged", undefined]);
  });

  test.each([
    ["suspend", "2026-11-20T08:04:00Z", /^until: .* has passed; give a later time, or leave it out to suspend until/],
    ["suspend", "tomorrow", /until: must be a time in UTC/],
    ["resume", "2026-11-20T10:00:00Z", /^until: a resume has no end; leave it out$/],
  ])("a %s until %s is refused", async (verb, until, message) => {
    const api = await withFleet();
    const rows = api.table.all();
    const { status, body } = await api.call("POST", `${groupPath}/${verb}`, { until });
    expect({ status, message: body.message }).toEqual({ status: 400, message: expect.stringMatching(message) });
    expect(api.table.all()).toEqual(rows);
  });

  test("functions of the version before leave a Source with an end alone, and poll it after a resume", async () => {
    const api = await withFleet();
    const row = async () => api.table.get(keys.object("payments", "Source", "app"));
    await api.call("POST", `${sourcePath}/suspend`, { until: "2026-11-20T10:00:00Z" });
    expect((await row())?.schema).toBe(newestRowSchema);
    expect(dueAtOf((await row())?.dueKey ?? "")).toBe("2026-11-20T10:00:00.000Z");
    await api.call("POST", `${sourcePath}/resume`, {});
    expect((await row())?.schema).toBe(rowSchema);
  });

  test("a resume of a Source polls it at once", async () => {
    const api = await withFleet();
    await api.call("POST", `${sourcePath}/suspend`, {});
    expect(api.takeMessages()).toEqual([]);
    const answer = await api.call("POST", `${sourcePath}/resume`, {});
    expect(answer.body.operations).toEqual({ resumed: { by: principal, at: "2026-11-20T08:05:00.000Z", number: 2 } });
    expect(api.takeMessages()).toEqual([{ to: "resolve", source: { namespace: "payments", name: "app" } }]);
    const twice = await api.call("POST", `${sourcePath}/resume`, {});
    expect(twice.body.outcome).toBe("unchanged");
  });

  test.each([
    ["a kind without this command", "/v1/clusters/c1/suspend", 404],
    ["an absent object", "/v1/namespaces/payments/syncgroups/none/suspend", 404],
    ["a Sync that belongs to a group", "/v1/namespaces/payments/syncs/shop.web/suspend", 405],
    ["a rollout", "/v1/namespaces/payments/rollouts/shop-1/suspend", 405],
  ])("a suspend of %s is refused", async (_what, path, status) => {
    const api = await withFleet();
    const before = api.table.all();
    expect((await api.call("POST", path, {})).status).toBe(status);
    expect(api.table.all()).toEqual(before);
  });
});

describe("a reconcile by the API", () => {
  test("a reconcile wakes the planner, and with the Sources also polls these", async () => {
    const api = await withFleet();
    await api.call("POST", `${groupPath}/reconcile`, {});
    expect(api.takeMessages()).toEqual([{ to: "rollout", owner: group, clusters: [] }]);
    api.setNow("2026-11-20T08:06:00Z");
    await api.call("POST", `${groupPath}/reconcile`, { withSource: true });
    expect(api.takeMessages()).toEqual([
      { to: "rollout", owner: group, clusters: [] },
      { to: "resolve", source: { namespace: "payments", name: "app" } },
    ]);
    const row = await api.table.get(keys.object("payments", "Source", "app"));
    expect(row?.operations.reconcile?.at).toBe("2026-11-20T08:06:00.000Z");
  });

  test("a reconcile is refused while the object is in deletion, unless the deletion failed", async () => {
    const api = await withFleet();
    await api.call("DELETE", `${groupPath}?confirm=true`);
    const key = keys.object("payments", "SyncGroup", "shop");
    for (const [reason, status] of [
      ["Deleting", 409],
      ["DeletionFailed", 200],
    ] as const) {
      const condition = {
        type: "Ready",
        status: "False",
        reason,
        message: "",
        lastTransitionTime: "2026-11-20T08:05:00Z",
      };
      await api.table.write([{ update: key, set: { status: { conditions: [condition] } } }]);
      expect(await api.call("POST", `${groupPath}/reconcile`, {})).toMatchObject({ status });
    }
  });

  test("a reconcile keeps the record of who resumed the object", async () => {
    const api = await withFleet();
    for (const verb of ["suspend", "resume", "reconcile"]) await api.call("POST", `${groupPath}/${verb}`, {});
    const row = await api.table.get(keys.object("payments", "SyncGroup", "shop"));
    expect(row?.operations).toMatchObject({ resumed: { number: 2 }, reconcile: { number: 3 } });
  });

  test("a reconcile is refused while the object is suspended, and the refusal names who suspended it", async () => {
    const api = await withFleet();
    await api.call("POST", `${groupPath}/suspend`, { reason: "INC-1" });
    const answer = await api.call("POST", `${groupPath}/reconcile`, {});
    expect(answer.status).toBe(409);
    expect(answer.body).toEqual({
      code: "Suspended",
      message: `SyncGroup payments/shop is suspended (by ${principal} at 2026-11-20T08:05:00.000Z: INC-1); resume it first`,
    });
  });

  test("a reconcile names the Sources that it could not poll", async () => {
    const api = await withFleet();
    await api.call("POST", `${sourcePath}/suspend`, {});
    const answer = await api.call("POST", `${groupPath}/reconcile`, { withSource: true });
    expect(answer.body.warnings).toEqual(["Source payments/app is suspended and was not asked"]);
  });
});

describe("a refresh by the API", () => {
  test("a refresh records who, when and why, and wakes the planner; a repeated refresh counts as another one", async () => {
    const api = await withFleet();
    const answer = await api.call("POST", `${groupPath}/refresh`, { reason: "INC-2" });
    const act = { by: principal, at: "2026-11-20T08:05:00.000Z", reason: "INC-2", number: 1 };
    expect(answer).toMatchObject({ status: 200, body: { outcome: "configured", operations: { refresh: act } } });
    expect(api.takeMessages()).toEqual([{ to: "rollout", owner: group, clusters: [] }]);
    expect(api.log).toContainEqual(expect.objectContaining({ verb: "refresh", principal, reason: "INC-2" }));
    await api.call("POST", `${groupPath}/refresh`, {});
    const row = await api.table.get(keys.object("payments", "SyncGroup", "shop"));
    expect(row?.operations).toEqual({ refresh: { by: principal, at: "2026-11-20T08:05:00.000Z", number: 2 } });
  });

  test("a refresh keeps the records of other commands, and they keep its record", async () => {
    const api = await withFleet();
    for (const verb of ["reconcile", "refresh", "suspend", "resume", "reconcile"])
      await api.call("POST", `${groupPath}/${verb}`, {});
    const row = await api.table.get(keys.object("payments", "SyncGroup", "shop"));
    expect(row?.operations).toMatchObject({ refresh: { number: 2 }, resumed: { number: 4 }, reconcile: { number: 5 } });
  });

  test.each<[string, string, number, string]>([
    ["a Source", `${sourcePath}/refresh`, 405, "Source payments/app has no rollouts; refresh a SyncGroup or a Sync"],
    [
      "an unknown group",
      "/v1/namespaces/payments/syncgroups/none/refresh",
      404,
      "SyncGroup payments/none does not exist",
    ],
    [
      "a rollout",
      "/v1/namespaces/payments/rollouts/shop-1/refresh",
      405,
      "rollouts are records; act on the SyncGroup instead",
    ],
  ])("a refresh of %s is refused", async (_what, path, status, message) => {
    const api = await withFleet();
    expect(await api.call("POST", path, {})).toMatchObject({ status, body: { message } });
    expect(api.takeMessages()).toEqual([]);
  });

  test("a refresh is refused while the object is suspended, and while it is in deletion", async () => {
    const api = await withFleet();
    await api.call("POST", `${groupPath}/suspend`, {});
    expect(await api.call("POST", `${groupPath}/refresh`, {})).toMatchObject({
      status: 409,
      body: { code: "Suspended" },
    });
    await api.call("POST", `${groupPath}/resume`, {});
    await api.call("DELETE", `${groupPath}?confirm=true`);
    expect(await api.call("POST", `${groupPath}/refresh`, {})).toMatchObject({
      status: 409,
      body: { code: "Deleting" },
    });
  });
});

describe("a deletion by the API", () => {
  test("a deletion of a Cluster raises the fleet's version", async () => {
    const api = apiFixture();
    await api.call("POST", "/v1/apply", { documents: [cluster("c1")] });
    const version = async () =>
      api.table
        .all()
        .filter(({ type }) => type === "FleetVersion")
        .map((row) => row.version);
    expect(await version()).toEqual([1]);
    await api.call("DELETE", "/v1/clusters/c1?confirm=true&cascade=orphan");
    expect(await version()).toEqual([2]);
  });

  test("a deletion asks for confirmation with its consequences, and then marks the group for the planner", async () => {
    const api = await withFleet();
    await api.table.write([{ put: syncRow("c1", "shop.web") }, { put: syncRow("c2", "shop.web") }]);
    const asked = await api.call("DELETE", groupPath);
    expect(asked.status).toBe(409);
    expect(asked.body).toMatchObject({
      code: "ConfirmationRequired",
      message: "deleting SyncGroup payments/shop takes 2 Syncs on 2 clusters with it; their objects are deleted",
      consequences: [{ syncs: 2, clusters: 2 }],
    });
    expect(api.takeMessages()).toEqual([]);

    const done = await api.call("DELETE", `${groupPath}?confirm=true&cascade=orphan&reason=moved`);
    expect(done).toMatchObject({ status: 200, body: { outcome: "deleting" } });
    const row = await api.table.get(keys.object("payments", "SyncGroup", "shop"));
    expect(row?.operations.deletion).toEqual({
      by: principal,
      at: "2026-11-20T08:05:00.000Z",
      cascade: "orphan",
      number: 1,
      reason: "moved",
    });
    expect(api.takeMessages()).toEqual([{ to: "rollout", owner: group, clusters: [] }]);

    await api.call("DELETE", `${groupPath}?confirm=true&cascade=orphan`);
    expect(api.takeMessages()).toEqual([]);
    const again = await api.call("POST", "/v1/apply", {
      documents: [syncGroup("shop", [{ name: "web", source: "app" }])],
    });
    expect(again).toMatchObject({ status: 409, body: { code: "Deleting" } });
  });

  test("a deletion of a Source that is in use is refused, and the refusal names its users [source.delete.used]", async () => {
    const api = await withFleet();
    const answer = await api.call("DELETE", `${sourcePath}?confirm=true`);
    expect(answer).toEqual({
      status: 409,
      body: {
        code: "InUse",
        message:
          "Source payments/app is used by Sync/extra, SyncGroup/shop; point them at another Source or delete them first",
        users: ["Sync/extra", "SyncGroup/shop"],
      },
    });
  });

  test("a deletion of an unused Source also removes its directory entries", async () => {
    const api = apiFixture();
    await api.call("POST", "/v1/apply", { documents: [source("app")] });
    const message = "deleting Source payments/app, which nothing uses";
    expect(await api.call("DELETE", sourcePath)).toEqual({
      status: 409,
      body: { code: "ConfirmationRequired", message, consequences: [{ message, syncs: 0, clusters: 0 }] },
    });
    expect((await api.call("DELETE", `${sourcePath}?confirm=true`)).body).toEqual({ outcome: "deleted" });
    expect(api.table.all()).toEqual([]);
    expect((await api.call("DELETE", `${sourcePath}?confirm=true`)).status).toBe(404);
  });

  test("a deletion of a Cluster with Syncs is refused, unless its objects are orphaned", async () => {
    const api = await withFleet();
    await api.table.write([{ put: syncRow("c1", "shop.web") }]);
    const refused = await api.call("DELETE", "/v1/clusters/c1?confirm=true");
    expect(refused).toMatchObject({ status: 409, body: { code: "InUse", users: ["payments/shop.web"] } });

    const asked = await api.call("DELETE", "/v1/clusters/c1?cascade=orphan");
    expect(asked.body.message).toBe("deleting Cluster c1 forgets 1 Sync; the objects in the cluster stay");
    api.takeMessages();
    const done = await api.call("DELETE", "/v1/clusters/c1?cascade=orphan&confirm=true");
    expect(done.body.outcome).toBe("deleted");
    const left = api.table.all().filter((row) => row.pk === "CL#c1" || row.pk === "FLEET");
    expect(left).toMatchObject([{ sk: "SYNC#payments#shop.web", desired: { action: "orphan", attempt: 3 } }]);
    expect(left[0]).not.toHaveProperty("observed");
    expect(api.takeMessages()).toHaveLength(2);
  });

  test("a deletion of a Cluster goes through when all its Syncs were forgotten before", async () => {
    const api = await withFleet();
    const row = syncRow("c1", "shop.web");
    const forgotten = {
      ...row,
      desired: { ...row.desired, action: "orphan" as const },
      stateSk: "Orphaned#c1#shop.web",
    };
    await api.table.write([{ put: forgotten }]);
    const asked = await api.call("DELETE", groupPath);
    expect(asked.body.message).toMatch(/takes 0 Syncs on 0 clusters/);
    expect((await api.call("DELETE", "/v1/clusters/c1?confirm=true")).body.outcome).toBe("deleted");
  });

  test("a deletion of a Cluster forgets Syncs that no worker has checked, and the observations of forgotten Syncs", async () => {
    const api = await withFleet();
    const { observed: _none, ...unseen } = syncRow("c1", "shop.new");
    const old = syncRow("c1", "shop.old");
    const forgotten = { ...old, desired: { ...old.desired, action: "orphan" } } as SyncRow;
    await api.table.write([{ put: unseen as SyncRow }, { put: forgotten }]);
    expect((await api.call("DELETE", "/v1/clusters/c1?cascade=orphan&confirm=true")).status).toBe(200);
    for (const name of ["shop.new", "shop.old"]) {
      const left = await api.table.get(keys.sync("c1", "payments", name));
      expect(left?.desired.action).toBe("orphan");
      expect(left).not.toHaveProperty("observed");
    }
  });

  test("a deletion of a Cluster that broke off is completed by the next request", async () => {
    const api = apiFixture();
    await api.table.write([{ put: syncRow("c1", "shop.web") }]);
    expect((await api.call("DELETE", "/v1/clusters/c1?cascade=orphan&confirm=true")).status).toBe(200);
    expect(api.table.all()).toMatchObject([{ desired: { action: "orphan" }, stateSk: "Orphaned#c1#shop.web" }]);
    expect((await api.call("DELETE", "/v1/clusters/c1?cascade=orphan&confirm=true")).status).toBe(404);
  });

  test("a deletion with an unknown cascade is refused", async () => {
    const api = await withFleet();
    expect(await api.call("DELETE", `${groupPath}?cascade=foreground`)).toMatchObject({
      status: 400,
      body: { code: "BadRequest", message: 'cascade is "foreground"; expected delete or orphan' },
    });
  });
});
