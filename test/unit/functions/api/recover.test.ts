import { describe, expect, it } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import { tokensOf } from "#shared/fleet/rows/lineage.ts";
import type { SourceRow, SubjectRow } from "#shared/fleet/rows/object-rows.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Remembered } from "#shared/kube/parent-object.ts";
import { apiFixture, cluster, PRINCIPAL, source, syncGroup } from "#test/unit/functions/api/api-fixture.ts";
import { syncRow } from "#test/unit/functions/api/row-fixture.ts";

const path = "/v1/clusters/c1/recover";
const theirs = { generation: 9, fence: 30, token: "token-9-of-others", inventory: `sha256:${"a".repeat(64)}` };
const seen = { namespace: "payments", name: "shop.web", generation: 9, token: "token-9-of-others" };
const looked = [{ namespace: "payments", name: "app", number: 1 }];

async function withRefused(remembered: Remembered = theirs) {
  const api = apiFixture();
  await api.call("POST", "/v1/apply", {
    documents: [source("app"), cluster("c1", { env: "prod" }), syncGroup("shop", [{ name: "web", source: "app" }])],
  });
  await api.call("POST", "/v1/namespaces/payments/sources/app/reconcile", {});
  const row = await api.table.get<SourceRow>(keys.object("payments", "Source", "app"));
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
  const sync = await api.table.get<SyncRow>(keys.sync("c1", "payments", "shop.web"));
  const subject = await api.table.get<SubjectRow>(keys.object("payments", "SyncGroup", "shop"));
  return { sync, subject };
}

describe("recovering a cluster", () => {
  it("moves the rows above what the cluster remembers, and replaces what is open, in one step", async () => {
    const api = await withRefused();
    const body = { syncs: [seen], sources: looked, reason: "restored" };
    const answer = await api.call("POST", path, body);
    expect(answer).toMatchObject({ status: 200, body: { recovered: ["payments/shop.web"], moved: [] } });
    const { sync, subject } = await rowsOf(api);
    expect(sync).toMatchObject({
      desired: { action: "orphan", attempt: 10, token: "token-2" },
      observed: { inventory: theirs.inventory, clusterUid: "uid" },
      recovered: { by: PRINCIPAL, reason: "restored", remembered: theirs },
    });
    expect(sync === undefined ? [] : tokensOf(sync)).toEqual(["token-2", "token-9-of-others"]);
    expect(sync?.observed).not.toHaveProperty("remembered");
    expect(subject?.operations.recovered).toMatchObject({ by: PRINCIPAL, reason: "restored", number: 1 });
    expect(await api.table.get(keys.sync("c1", "payments", "shop.other"))).toEqual(syncRow("c1", "shop.other"));
    expect(api.takeMessages()).toEqual([
      { to: "rollout", subject: { namespace: "payments", kind: "SyncGroup", name: "shop" } },
    ]);
    expect(api.log.at(-1)).toMatchObject({ audit: true, verb: "recover (payments/shop.web)", principal: PRINCIPAL });
    // Done again, there is nothing to do.
    const before = await rowsOf(api);
    expect(await api.call("POST", path, body)).toMatchObject({ body: { recovered: [], moved: ["payments/shop.web"] } });
    expect(await rowsOf(api)).toEqual(before);
  });

  it("writes what was seen, and leaves alone what has moved on or is somebody's", async () => {
    for (const [remembered, body] of [
      [{ ...theirs, token: "token-10-of-others", generation: 10 }, {}],
      [{ ...theirs, owner: "another-installation" }, {}],
      [{ ...theirs, owner: "another-installation" }, { from: "a-third" }],
    ] as const) {
      const api = await withRefused(remembered);
      const before = await rowsOf(api);
      const answer = await api.call("POST", path, { syncs: [seen], sources: looked, ...body });
      expect(answer).toMatchObject({ status: 200, body: { recovered: [], moved: ["payments/shop.web"] } });
      expect(await rowsOf(api)).toEqual(before);
    }
  });

  it("takes over from an owner that is named", async () => {
    const api = await withRefused({ ...theirs, owner: "another-installation" });
    const body = { syncs: [seen], sources: looked, from: "another-installation" };
    expect(await api.call("POST", path, body)).toMatchObject({ body: { recovered: ["payments/shop.web"] } });
  });

  it.each([
    ["was not asked", []],
    ["has not answered since", [{ namespace: "payments", name: "app", number: 2 }]],
  ])("waits for a Source that %s", async (_what, sources) => {
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

describe("recovering several subjects of a cluster", () => {
  const other = { ...seen, name: "tools.web" };

  async function withTwo() {
    const api = await withRefused();
    await api.call("POST", "/v1/apply", { documents: [syncGroup("tools", [{ name: "web", source: "app" }])] });
    const sync = syncRow("c1", "tools.web", { phase: "Failed", reason: "ClusterAhead" });
    await api.table.write([{ put: { ...sync, observed: { ...sync.observed, remembered: theirs } } as SyncRow }]);
    api.takeMessages();
    return api;
  }

  it("writes each with its own Syncs, and nothing of them in the index of what is there", async () => {
    const api = await withTwo();
    const answer = await api.call("POST", path, { syncs: [seen, other], sources: looked });
    expect(answer.body).toEqual({ recovered: ["payments/shop.web", "payments/tools.web"], moved: [], refused: [] });
    for (const [group, name] of [
      ["shop", "shop.web"],
      ["tools", "tools.web"],
    ] as const) {
      const subject = await api.table.get<SubjectRow>(keys.object("payments", "SyncGroup", group));
      expect(subject?.operations.recovered).toMatchObject({ by: PRINCIPAL });
      const sync = await api.table.get<SyncRow>(keys.sync("c1", "payments", name));
      expect(sync?.stateSk).toBe(`Orphaned#c1#${name}`);
    }
    expect(api.takeMessages()).toHaveLength(2);
  });

  it.each([
    ["comes first", "shop", "tools"],
    ["comes last", "tools", "shop"],
  ])("recovers the others where one waits for its Source, which %s", async (_what, broken, sound) => {
    const api = await withTwo();
    await api.call("POST", "/v1/apply", {
      documents: [source("lib"), syncGroup(broken, [{ name: "web", source: "lib" }])],
    });
    api.takeMessages();
    const answer = await api.call("POST", path, { syncs: [seen, other], sources: looked });
    expect(answer.body).toMatchObject({
      recovered: [`payments/${sound}.web`],
      moved: [],
      refused: [{ syncs: [`payments/${broken}.web`], code: "SourceNotReady" }],
    });
    expect(api.takeMessages()).toEqual([
      { to: "rollout", subject: { namespace: "payments", kind: "SyncGroup", name: sound } },
    ]);
    expect(api.log.filter(({ verb }) => String(verb).startsWith("recover"))).toHaveLength(1);
  });

  it("leaves alone what cannot be read, and recovers the others", async () => {
    for (const key of [keys.sync("c1", "payments", "tools.web"), keys.object("payments", "SyncGroup", "tools")]) {
      const api = await withTwo();
      await api.table.write([{ update: key, set: { schema: 2 } }]);
      const before = (await api.table.getMany([key], { newer: "kept" }))[0];
      const answer = await api.call("POST", path, { syncs: [seen, other], sources: looked });
      expect(answer).toMatchObject({
        status: 200,
        body: { recovered: ["payments/shop.web"], moved: ["payments/tools.web"] },
      });
      expect((await api.table.getMany([key], { newer: "kept" }))[0]).toEqual(before);
    }
  });

  it.each([
    ["the token", { ...theirs, token: "token-of-a-third" }],
    ["the generation", { ...theirs, generation: 10 }],
  ])("leaves alone what moved on by %s alone, and audits nothing", async (_what, remembered) => {
    const api = await withRefused(remembered);
    const answer = await api.call("POST", path, { syncs: [seen], sources: looked });
    expect(answer.body).toEqual({ recovered: [], moved: ["payments/shop.web"], refused: [] });
    expect(api.log.filter(({ verb }) => String(verb).startsWith("recover"))).toEqual([]);
  });

  it.each([
    ["of another name", { namespace: "payments", name: "lib", number: 1 }],
    ["of another namespace", { namespace: "other", name: "app", number: 1 }],
  ])("does not take a look at a Source %s for its own", async (_what, one) => {
    const api = await withRefused();
    const answer = await api.call("POST", path, { syncs: [seen], sources: [one] });
    expect(answer.body).toMatchObject({ recovered: [], refused: [{ code: "SourceNotReady" }] });
  });
});
