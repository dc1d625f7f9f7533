import { describe, expect, test } from "vitest";
import { ConflictError, StarlingError } from "#shared/base/errors.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { accepted, tokensOf } from "#shared/fleet/rows/lineage.ts";
import type { SourceRow } from "#shared/fleet/rows/object-rows.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Remembered } from "#shared/kube/parent-object.ts";
import type { Write } from "#shared/ports.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { refusingWrites } from "#test/support/refusing-writes.ts";
import { apiFixture, cluster, principal, source, syncGroup } from "#test/unit/functions/api/api-fixture.ts";
import { syncRow } from "#test/unit/functions/api/row-fixture.ts";

const path = "/v1/clusters/c1/recover";
const theirs = { attempt: 9, fence: 30, token: "token-9-of-others", inventory: `sha256:${"a".repeat(64)}` };
const seen = { namespace: "payments", name: "shop.web", attempt: 9, token: "token-9-of-others" };
const polled = [{ namespace: "payments", name: "app", number: 1 }];

async function withRefused(remembered: Remembered = theirs, api = apiFixture()) {
  await api.call("POST", "/v1/apply", {
    documents: [source("app"), cluster("c1", { env: "prod" }), syncGroup("shop", [{ name: "web", source: "app" }])],
  });
  await api.call("POST", "/v1/namespaces/payments/sources/app/reconcile", {});
  const row = await api.table.get(keys.object("payments", "Source", "app"));
  if (row === undefined) throw new Error("it was applied");
  const status = { ...row.status, handledReconcile: 1 };
  const sync = syncRow("c1", "shop.web", { phase: "Failed", reason: "ClusterAhead" });
  const observed = { ...sync.observed, clusterUid: "uid", inventory: "sha256:old", remembered } as SyncRow["observed"];
  await api.table.write([
    { put: { ...row, version: row.version + 1, status } as SourceRow },
    { put: { ...sync, observed } as SyncRow },
    { put: syncRow("c1", "shop.other") },
  ]);
  api.takeMessages();
  return api;
}

async function rowsOf(api: ReturnType<typeof apiFixture>) {
  const sync = await api.table.get(keys.sync("c1", "payments", "shop.web"));
  const owner = await api.table.get(keys.object("payments", "SyncGroup", "shop"));
  return { sync, owner };
}

describe("the recovery of one Sync", () => {
  test("a recover moves the rows past what the cluster remembers, and replaces the open assignment, in one step", async () => {
    const api = await withRefused();
    const body = { syncs: [seen], sources: polled, reason: "restored" };
    const answer = await api.call("POST", path, body);
    expect(answer).toMatchObject({ status: 200, body: { recovered: ["payments/shop.web"], moved: [] } });
    const { sync, owner } = await rowsOf(api);
    expect(sync).toMatchObject({
      desired: { action: "orphan", attempt: 10, token: "token-2" },
      observed: { inventory: theirs.inventory, clusterUid: "uid" },
      recovered: { by: principal, reason: "restored", remembered: theirs },
    });
    expect(sync === undefined ? [] : tokensOf(sync)).toEqual(["token-2", "token-9-of-others"]);
    expect(sync?.observed).not.toHaveProperty("remembered");
    expect(owner?.operations.recovered).toMatchObject({ by: principal, reason: "restored", number: 1 });
    expect(await api.table.get(keys.sync("c1", "payments", "shop.other"))).toEqual(syncRow("c1", "shop.other"));
    expect(api.takeMessages()).toEqual([
      { to: "rollout", owner: { namespace: "payments", kind: "SyncGroup", name: "shop" }, clusters: [] },
    ]);
    expect(api.log.at(-1)).toMatchObject({ audit: true, verb: "recover (payments/shop.web)", principal: principal });
    // A repeated recover has nothing to do.
    const before = await rowsOf(api);
    expect(await api.call("POST", path, body)).toMatchObject({ body: { recovered: [], moved: ["payments/shop.web"] } });
    expect(await rowsOf(api)).toEqual(before);
  });

  test("a recover of all clusters is also recorded for clusters without rows, with the former owner", async () => {
    const api = await withRefused({ ...theirs, owner: "another-installation" });
    const body = { syncs: [seen], sources: polled, all: true, from: "another-installation" };
    expect(await api.call("POST", path, body)).toMatchObject({
      status: 200,
      body: { recovered: ["payments/shop.web"] },
    });
    const { owner } = await rowsOf(api);
    expect(owner?.operations.recovered).toMatchObject({ by: principal, all: true, from: "another-installation" });
  });

  test("a recover changes only what the person saw, and no Sync that has changed since or has another owner", async () => {
    for (const [remembered, body] of [
      [{ ...theirs, token: "token-10-of-others", attempt: 10 }, {}],
      [{ ...theirs, owner: "another-installation" }, {}],
      [{ ...theirs, owner: "another-installation" }, { from: "a-third" }],
    ] as const) {
      const api = await withRefused(remembered);
      const before = await rowsOf(api);
      const answer = await api.call("POST", path, { syncs: [seen], sources: polled, ...body });
      expect(answer).toMatchObject({ status: 200, body: { recovered: [], moved: ["payments/shop.web"] } });
      expect(await rowsOf(api)).toEqual(before);
    }
  });

  test("a recover of all clusters counts a Sync that the planner recovered meanwhile from the same state", async () => {
    for (const [before, answer] of [
      [theirs, { recovered: ["payments/shop.web"], moved: [] }],
      [
        { ...theirs, token: "token-8-of-others" },
        { recovered: [], moved: ["payments/shop.web"] },
      ],
    ] as const) {
      const api = await withRefused(before);
      const { sync } = await rowsOf(api);
      const meanwhile = { ...sync, ...accepted(sync as SyncRow, { by: "somebody", at: "2026-11-01T08:00:00.000Z" }) };
      await api.table.write([{ put: meanwhile as SyncRow }]);
      const body = { syncs: [seen], sources: polled, all: true };
      expect((await api.call("POST", path, body)).body).toEqual({ ...answer, refused: [] });
      expect((await rowsOf(api)).sync).toEqual(meanwhile);
    }
  });

  test("a recover takes over from an owner that the request names", async () => {
    const api = await withRefused({ ...theirs, owner: "another-installation" });
    const body = { syncs: [seen], sources: polled, from: "another-installation" };
    expect(await api.call("POST", path, body)).toMatchObject({ body: { recovered: ["payments/shop.web"] } });
  });

  test.each([
    ["is not in the request", []],
    ["has not handled its poll yet", [{ namespace: "payments", name: "app", number: 2 }]],
  ])("a recover waits for a Source that %s", async (_what, sources) => {
    const api = await withRefused();
    const before = await rowsOf(api);
    const answer = await api.call("POST", path, { syncs: [seen], sources });
    const message = expect.stringContaining("starling describe source/app -n payments");
    const refused = [{ syncs: ["payments/shop.web"], code: "SourceNotReady", message }];
    expect(answer).toEqual({ status: 200, body: { recovered: [], moved: [], refused } });
    expect(await rowsOf(api)).toEqual(before);
    expect(api.takeMessages()).toEqual([]);
  });
});

describe("the recovery of several groups on one cluster", () => {
  const other = { ...seen, name: "tools.web" };

  async function withTwo() {
    const api = await withRefused();
    await api.call("POST", "/v1/apply", { documents: [syncGroup("tools", [{ name: "web", source: "app" }])] });
    const sync = syncRow("c1", "tools.web", { phase: "Failed", reason: "ClusterAhead" });
    await api.table.write([{ put: { ...sync, observed: { ...sync.observed, remembered: theirs } } as SyncRow }]);
    api.takeMessages();
    return api;
  }

  test("a recover records each group with its own Syncs, and the index says Orphaned for each Sync", async () => {
    const api = await withTwo();
    const answer = await api.call("POST", path, { syncs: [seen, other], sources: polled });
    expect(answer.body).toEqual({ recovered: ["payments/shop.web", "payments/tools.web"], moved: [], refused: [] });
    for (const [group, name] of [
      ["shop", "shop.web"],
      ["tools", "tools.web"],
    ] as const) {
      const owner = await api.table.get(keys.object("payments", "SyncGroup", group));
      expect(owner?.operations.recovered).toMatchObject({ by: principal });
      const sync = await api.table.get(keys.sync("c1", "payments", name));
      expect(sync?.stateSk).toBe(`Orphaned#c1#${name}`);
    }
    expect(api.takeMessages()).toHaveLength(2);
  });

  test.each([
    ["comes first", "shop", "tools"],
    ["comes last", "tools", "shop"],
  ])(
    "a recover goes on with the other groups when one waits for its Source, which %s",
    async (_what, broken, sound) => {
      const api = await withTwo();
      await api.call("POST", "/v1/apply", {
        documents: [source("lib"), syncGroup(broken, [{ name: "web", source: "lib" }])],
      });
      api.takeMessages();
      const answer = await api.call("POST", path, { syncs: [seen, other], sources: polled });
      expect(answer.body).toMatchObject({
        recovered: [`payments/${sound}.web`],
        moved: [],
        refused: [{ syncs: [`payments/${broken}.web`], code: "SourceNotReady" }],
      });
      expect(api.takeMessages()).toEqual([
        { to: "rollout", owner: { namespace: "payments", kind: "SyncGroup", name: sound }, clusters: [] },
      ]);
      expect(api.log.filter(({ verb }) => String(verb).startsWith("recover"))).toHaveLength(1);
    },
  );

  test("a recover leaves unreadable rows alone, and recovers the other Syncs", async () => {
    for (const key of [keys.sync("c1", "payments", "tools.web"), keys.object("payments", "SyncGroup", "tools")]) {
      const api = await withTwo();
      await api.table.write([{ update: key, set: { schema: 4 } }]);
      const before = (await api.table.getMany([key], { newer: "kept" }))[0];
      const answer = await api.call("POST", path, { syncs: [seen, other], sources: polled });
      expect(answer).toMatchObject({
        status: 200,
        body: { recovered: ["payments/shop.web"], moved: ["payments/tools.web"] },
      });
      expect((await api.table.getMany([key], { newer: "kept" }))[0]).toEqual(before);
    }
  });

  test("a recover needs no readable row of the Cluster, only a registered one", async () => {
    const api = await withRefused();
    await api.table.write([{ update: keys.cluster("c1"), set: { schema: 4 } }]);
    const answer = await api.call("POST", path, { syncs: [seen], sources: polled });
    expect(answer).toMatchObject({ status: 200, body: { recovered: ["payments/shop.web"] } });
    expect(await api.call("POST", "/v1/clusters/c9/recover", { syncs: [seen], sources: polled })).toMatchObject({
      status: 404,
      body: { message: "Cluster c9 does not exist" },
    });
  });

  test("a recover waits for each Source of a group, and names only the Sources that it waits for", async () => {
    const api = await withRefused();
    const templates = [
      { name: "web", source: "app" },
      { name: "db", source: "lib" },
      { name: "job", source: "newer" },
    ];
    const documents = [source("lib"), source("newer"), syncGroup("shop", templates)];
    await api.call("POST", "/v1/apply", { documents });
    await api.table.write([{ update: keys.object("payments", "Source", "newer"), set: { schema: 4 } }]);
    const sources = [...polled, ...["lib", "newer"].map((name) => ({ namespace: "payments", name, number: 0 }))];
    const { body } = await api.call("POST", path, { syncs: [seen], sources });
    expect(body.refused).toMatchObject([{ syncs: ["payments/shop.web"], code: "SourceNotReady" }]);
    expect(body.refused[0].message).toMatch(/^source\/lib, source\/newer of namespace payments could not be polled/);
  });

  test("a recover waits for a Source whose last poll failed", async () => {
    const api = await withRefused();
    const key = keys.object("payments", "Source", "app");
    const status = (await api.table.get(key))?.status;
    await api.table.write([{ update: key, set: { status: { ...status, failures: 1 } } }]);
    const answer = await api.call("POST", path, { syncs: [seen], sources: polled });
    expect(answer.body).toMatchObject({ recovered: [], refused: [{ code: "SourceNotReady" }] });
  });

  test("a recover continues the numbers of earlier commands on the group", async () => {
    const api = await withRefused();
    await api.call("POST", "/v1/namespaces/payments/syncgroups/shop/suspend", {});
    await api.call("POST", path, { syncs: [seen], sources: polled });
    expect((await rowsOf(api)).owner?.operations).toMatchObject({
      suspended: { number: 1 },
      recovered: { number: 2 },
    });
  });

  test.each([
    ["the token", { ...theirs, token: "token-of-a-third" }],
    ["the attempt", { ...theirs, attempt: 10 }],
  ])("a recover changes nothing and audits nothing when only %s has changed", async (_what, remembered) => {
    const api = await withRefused(remembered);
    const answer = await api.call("POST", path, { syncs: [seen], sources: polled });
    expect(answer.body).toEqual({ recovered: [], moved: ["payments/shop.web"], refused: [] });
    expect(api.log.filter(({ verb }) => String(verb).startsWith("recover"))).toEqual([]);
  });

  test.each([
    ["of another name", { namespace: "payments", name: "lib", number: 1 }],
    ["of another namespace", { namespace: "other", name: "app", number: 1 }],
  ])("a recover does not accept the poll of a Source %s", async (_what, one) => {
    const api = await withRefused();
    const answer = await api.call("POST", path, { syncs: [seen], sources: [one] });
    expect(answer.body).toMatchObject({ recovered: [], refused: [{ code: "SourceNotReady" }] });
  });
});

describe("a recovery while others write", () => {
  const busy = new StarlingError("DynamoDB kept refusing", { code: "TableBusy", retry: "transient" });

  test.each([
    ["nine times", new ConflictError("somebody else wrote it"), 9, ["payments/shop.web"], []],
    ["ten times", new ConflictError("somebody else wrote it"), 10, [], [{ code: "Conflict" }]],
  ] as const)("a recover tries again when others write %s", async (_what, error, times, recovered, refused) => {
    const { api, fail } = await failing();
    fail(error, times);
    const answer = await api.call("POST", path, { syncs: [seen], sources: polled });
    expect(answer).toMatchObject({ status: 200, body: { recovered, moved: [], refused } });
  });

  test("a recover ends with any other failure, and reports and audits what it did before", async () => {
    const { api, fail } = await failing();
    await api.call("POST", "/v1/apply", { documents: [syncGroup("tools", [{ name: "web", source: "app" }])] });
    const sync = syncRow("c1", "tools.web", { phase: "Failed", reason: "ClusterAhead" });
    await api.table.write([{ put: { ...sync, observed: { ...sync.observed, remembered: theirs } } as SyncRow }]);
    api.takeMessages();
    fail(busy, 1, "tools.web");
    const both = { syncs: [seen, { ...seen, name: "tools.web" }], sources: polled };
    expect(await api.call("POST", path, both)).toMatchObject({ status: 503, body: { code: "TableBusy" } });
    expect(api.takeMessages()).toEqual([
      { to: "rollout", owner: { namespace: "payments", kind: "SyncGroup", name: "shop" }, clusters: [] },
    ]);
    expect(api.log).toContainEqual(expect.objectContaining({ audit: true, verb: "recover (payments/shop.web)" }));
    const again = await api.call("POST", path, both);
    expect(again.body).toMatchObject({ recovered: ["payments/tools.web"], moved: ["payments/shop.web"], refused: [] });
  });

  /** As many writes of a Sync's row fail, once there is something to recover. */
  async function failing() {
    const table = new MemoryTable();
    let left = 0;
    let failure: { readonly error: Error; readonly name: string } | undefined;
    const touched = (write: Write, name: string) => "put" in write && write.put.sk.endsWith(`#${name}`);
    const through = refusingWrites(table, (writes) => {
      if (failure === undefined) return undefined;
      const { error, name } = failure;
      return writes.some((write) => touched(write, name)) && left-- > 0 ? error : undefined;
    });
    const api = await withRefused(theirs, apiFixture(table, through));
    const fail = (error: Error, times: number, name = "shop.web") => {
      failure = { error, name };
      left = times;
    };
    return { api, fail };
  }
});
