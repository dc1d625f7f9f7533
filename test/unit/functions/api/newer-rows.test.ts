/**
 * Rows that a newer version wrote before its deployment was rolled back: the API lists them as Unreadable, and changes
 * none.
 */
import { beforeEach, describe, expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { CatchUpRow } from "#shared/fleet/rows/rollout-rows.ts";
import { keyText, newestRowSchema, type RowKey, rowSchema } from "#shared/fleet/rows/row.ts";
import { type ApiFixture, apiFixture, cluster, source, sync, syncGroup } from "#test/unit/functions/api/api-fixture.ts";
import { shop, storeRollout, syncRow } from "#test/unit/functions/api/row-fixture.ts";

let api: ApiFixture;

const documents = [
  source("app"),
  source("lib"),
  cluster("c1", { env: "prod" }),
  cluster("c2", { env: "prod" }),
  syncGroup("shop", [{ name: "web", source: "app" }]),
  syncGroup("tools", [{ name: "web", source: "lib" }]),
  sync("extra", { cluster: "c1", source: "lib" }),
];

beforeEach(async () => {
  api = apiFixture();
  await api.call("POST", "/v1/apply", { documents });
  await api.table.write([
    { put: syncRow("c1", "shop.web") },
    { put: syncRow("c2", "shop.web") },
    { put: syncRow("c1", "extra") },
  ]);
  await storeRollout(api, { number: 1, states: { all: ["Succeeded", "Succeeded"] } });
  await storeRollout(api, { number: 2, states: { all: ["Succeeded", "Failed", "Waiting"] } });
  api.takeMessages();
});

/** Gives the row a shape that this version does not know. */
async function makeNewer(key: RowKey): Promise<void> {
  const remove = ["spec", "status", "labels", "operations", "desired", "observed", "owner", "stages", "state"];
  await api.table.write([{ update: key, set: { schema: newestRowSchema + 1 }, remove }]);
}

const stageRun = (rollout: number) => keys.stageRun(shop, { rollout, stage: "all", snapshot: 0 });
const object = (kind: "Source" | "SyncGroup" | "Sync", name: string) => keys.object("payments", kind, name);
const get = async (path: string) => (await api.call("GET", path)).body;

function failedCatchUp(cluster: string): CatchUpRow {
  const key = keys.catchUp(shop, "failed", cluster);
  const parts = { type: "CatchUp", schema: rowSchema, version: 1, why: "joined", reason: "ApplyFailed" } as const;
  return { ...key, ...parts, cluster, since: "2026-11-20T07:55:00.000Z" };
}

/** A list with the items of all its pages. */
async function list(path: string) {
  const separator = path.includes("?") ? "&" : "?";
  let page = await get(path);
  const items = [...page.items];
  while (page.metadata.continue !== undefined) {
    page = await get(`${path}${separator}continue=${page.metadata.continue}`);
    items.push(...page.items);
  }
  return { ...page, items };
}

/** `name cluster state`, without the parts that are missing. */
function lines(body: { readonly items?: readonly unknown[] }): readonly string[] {
  return (body.items ?? []).map((item) => {
    const { metadata, spec, status } = item as {
      metadata: { name: string };
      spec: { cluster?: string };
      status: { state?: string };
    };
    return [metadata.name, spec.cluster, status.state].filter((part) => part !== undefined).join(" ");
  });
}

describe("a row of a newer version is listed beside the others, and shown alone", () => {
  /** The Sync of a group that was never planned. */
  const waiting = ["tools.web c1 Waiting"];
  const ns = "/v1/namespaces/payments";
  const cases: readonly (readonly [string, RowKey, string, string, readonly string[]])[] = [
    ["a Source", object("Source", "app"), `${ns}/sources`, `${ns}/sources/app`, ["app Unreadable", "lib"]],
    [
      "a Source, in the list of all namespaces",
      object("Source", "app"),
      "/v1/sources",
      `${ns}/sources/app`,
      ["app Unreadable", "lib"],
    ],
    ["a Cluster", keys.cluster("c1"), "/v1/clusters", "/v1/clusters/c1", ["c1 Unreadable", "c2"]],
    [
      "a Cluster, in a list with a label selector",
      keys.cluster("c1"),
      "/v1/clusters?labelSelector=env%3Dprod",
      "/v1/clusters/c1",
      ["c1 Unreadable", "c2"],
    ],
    [
      "a SyncGroup",
      object("SyncGroup", "shop"),
      `${ns}/syncgroups`,
      `${ns}/syncgroups/shop`,
      ["shop Unreadable", "tools"],
    ],
    [
      "a Sync that a user wrote",
      object("Sync", "extra"),
      `${ns}/syncs`,
      `${ns}/syncs/extra`,
      ["extra Unreadable", "shop.web c1 Ready", "shop.web c2 Ready"],
    ],
    [
      "a user's Sync on its cluster",
      keys.sync("c1", "payments", "extra"),
      `${ns}/syncs`,
      `${ns}/syncs/extra`,
      ["extra c1 Unreadable", "shop.web c1 Ready", "shop.web c2 Ready"],
    ],
    [
      "a group's Sync",
      keys.sync("c1", "payments", "shop.web"),
      `${ns}/syncs`,
      `${ns}/syncs/shop.web?cluster=c1`,
      ["extra c1 Ready", "shop.web c1 Unreadable", "shop.web c2 Ready"],
    ],
    [
      "a Sync of a group, in the list of its cluster",
      keys.sync("c1", "payments", "shop.web"),
      "/v1/clusters/c1/syncs",
      `${ns}/syncs/shop.web?cluster=c1`,
      ["extra c1 Ready", "shop.web c1 Unreadable", "tools.web c1 Waiting"],
    ],
    [
      "a Sync of a group, in the list of the group",
      keys.sync("c2", "payments", "shop.web"),
      `${ns}/syncgroups/shop/syncs`,
      `${ns}/syncs/shop.web?cluster=c2`,
      ["shop.web c1 Ready", "shop.web c2 Unreadable"],
    ],
    [
      "a group's Sync, in the list of the state Unreadable",
      keys.sync("c2", "payments", "shop.web"),
      `${ns}/syncs?state=Unreadable`,
      `${ns}/syncs/shop.web?cluster=c2`,
      ["shop.web c2 Unreadable"],
    ],
    [
      "a rollout",
      keys.rollout(shop, 1),
      `${ns}/syncgroups/shop/rollouts`,
      `${ns}/rollouts/shop-1`,
      ["shop-2", "shop-1 Unreadable"],
    ],
    ["the newest rollout", keys.rollout(shop, 2), "/v1/rollouts", `${ns}/rollouts/shop-2`, ["shop-2 Unreadable"]],
    [
      "a rollout with a stage run",
      stageRun(1),
      `${ns}/syncgroups/shop/rollouts`,
      `${ns}/rollouts/shop-1`,
      ["shop-2", "shop-1 Unreadable"],
    ],
    [
      "the newest rollout, with a stage run",
      stageRun(2),
      "/v1/rollouts",
      `${ns}/rollouts/shop-2`,
      ["shop-2 Unreadable"],
    ],
  ];

  test.each(cases)(
    "a row of a newer version is Unreadable in its list and alone: %s",
    async (_, key, path, one, expected) => {
      await makeNewer(key);
      const rows = api.table.all();
      const listed = await list(path);
      expect(lines(listed)).toEqual(expected);
      const item = listed.items.find(
        (candidate: { status: { state?: string } }) => candidate.status.state === "Unreadable",
      );
      expect(item).toMatchObject({ apiVersion: "starling.dev/v1alpha1", kind: listed.kind.replace(/List$/, "") });
      const [condition] = item.status.conditions;
      expect(condition).toMatchObject({ type: "Ready", status: "Unknown", reason: "NewerRow" });
      expect(condition.message).toBe(
        `the row ${keyText(key)} has schema 4, and this version of Starling reads up to 3; it is left alone: update the stack to the version that wrote it`,
      );
      expect(await get(one)).toEqual(item);
      expect(api.table.all()).toEqual(rows);
    },
  );

  test("a readable Sync keeps its state when only its group is unreadable", async () => {
    await makeNewer(object("SyncGroup", "shop"));
    expect(lines(await list("/v1/clusters/c1/syncs"))).toEqual(["extra c1 Ready", "shop.web c1 Ready", ...waiting]);
    await makeNewer(object("Sync", "extra"));
    expect(lines(await list("/v1/clusters/c1/syncs"))).toEqual([
      "extra c1 Unreadable",
      "shop.web c1 Ready",
      ...waiting,
    ]);
  });

  test("a Cluster counts its unreadable Syncs", async () => {
    await makeNewer(keys.sync("c1", "payments", "shop.web"));
    const others = [
      { state: "Unreadable", count: 1, example: "payments/shop.web" },
      { state: "Waiting", count: 1, example: "payments/tools.web" },
    ];
    const counted = { total: 3, ready: 1, others };
    expect((await get("/v1/clusters")).items[0].status.syncs).toEqual(counted);
    expect((await get("/v1/clusters/c1")).status.syncs).toEqual(counted);
  });

  test("an unreadable rollout state stands in for the newest rollout of its group", async () => {
    await makeNewer(keys.rolloutState(shop));
    expect(lines(await list("/v1/rollouts"))).toEqual(["shop Unreadable"]);
    const answer = await api.call("GET", "/v1/namespaces/payments/syncgroups/shop/rollouts");
    expect(answer).toMatchObject({ status: 409, body: { code: "NewerRow" } });
  });

  test.each<[string, RowKey]>([
    ["rollout state", keys.rolloutState(shop)],
    ["stage run", stageRun(2)],
    ["row of the freezes", keys.freezeState],
  ])("a group has no overview while its %s is unreadable", async (_, key) => {
    await makeNewer(key);
    const answer = await api.call("GET", "/v1/namespaces/payments/syncgroups/shop/rollout");
    expect(answer).toMatchObject({ status: 409, body: { code: "NewerRow" } });
  });

  test("a group has an overview without an unreadable slot and without an unreadable failed catch-up", async () => {
    await storeRollout(api, { number: 3, states: { all: ["Applying", "Assigned", "Waiting"] } });
    const catchUps = { waiting: 0, changing: 0, failed: 2 };
    await api.table.write([
      { update: keys.rolloutState(shop), set: { catchUps, unreadable: ["c1", "c8"] } },
      ...["c8", "c9"].map((name) => ({ put: failedCatchUp(name) })),
    ]);
    await makeNewer(keys.slot(shop, "c1"));
    await makeNewer(keys.catchUp(shop, "failed", "c8"));
    const { status } = await get("/v1/namespaces/payments/syncgroups/shop/rollout");
    expect(status.slots.used).toBe(2);
    expect(status.waits).toMatchObject([
      {
        reason: "newer",
        clusters: { count: 2, names: ["c1", "c8"] },
        message:
          "rows of clusters c1, c8 were written by a newer version of Starling, and are left alone: update the stack",
        clear: [],
      },
      { reason: "catchUps", clusters: { names: ["c9"] } },
      { reason: "slots", message: expect.stringContaining("oldest: c2") },
      { reason: "source" },
    ]);
  });

  test("an unreadable target of a rollout has its place in the list, and no other data", async () => {
    await makeNewer(keys.target(shop, { rollout: 2, stage: "all", snapshot: 0 }, "c2"));
    const { items } = await get("/v1/namespaces/payments/syncgroups/shop/rollouts/2/targets");
    expect(items).toMatchObject([
      { cluster: "c1", state: "Succeeded" },
      {
        cluster: "c2",
        order: 1,
        stage: "all",
        state: "Unreadable",
        reason: expect.stringMatching(/^NewerRow: the row/),
      },
      { cluster: "c3", state: "Waiting" },
    ]);
    const failed = await get("/v1/namespaces/payments/syncgroups/shop/rollouts/2/targets?state=Failed");
    expect(failed.items).toEqual([]);
  });

  test("an unreadable event has its time in the list, and no other data", async () => {
    const about = { namespace: "payments", kind: "SyncGroup", name: "shop" };
    const event = (at: string, schema: number) =>
      ({
        ...keys.event(about, at, "1"),
        type: "Event",
        schema,
        version: 1,
        at,
        severity: "info",
        reason: "RolloutComplete",
        message: "",
      }) as const;
    await api.table.write([
      { put: event("2026-11-20T07:00:00.000Z", rowSchema) },
      { put: event("2026-11-20T07:10:00.000Z", newestRowSchema + 1) },
    ]);
    expect((await get("/v1/namespaces/payments/syncgroups/shop/events")).items).toMatchObject([
      { at: "2026-11-20T07:10:00.000Z", severity: "error", reason: "NewerRow" },
      { at: "2026-11-20T07:00:00.000Z", reason: "RolloutComplete" },
    ]);
  });
});

describe("an unreadable row beside an object does not affect the object", () => {
  const beside: Readonly<Record<string, RowKey>> = {
    "a cluster's entry in the fleet": keys.fleet("c2"),
    "the entry of a group": keys.owner(shop),
    "the entry of a Source": keys.sourceEntry({ namespace: "payments", name: "app" }),
    "the rollout of the desired revision": keys.rollout(shop, 2),
    "the stage run of that rollout": stageRun(2),
    "the rollout state": keys.rolloutState(shop),
    "the row of the freezes": keys.freezeState,
  };

  test.each(Object.entries(beside))("objects are listed although %s is unreadable", async (_, key) => {
    // The group lags behind its rollout, so that the list reads this row and the fleet.
    const status = { conditions: [], state: "Rolling", rollout: 2 };
    await api.table.write([{ update: object("SyncGroup", "shop"), set: { status } }]);
    await makeNewer(key);
    const named = async (path: string) =>
      (await list(path)).items.map((item: { metadata: { name: string } }) => item.metadata.name);
    expect(await named("/v1/clusters")).toEqual(["c1", "c2"]);
    expect(await named("/v1/syncs")).toEqual(["extra", "shop.web", "shop.web"]);
    expect(await named("/v1/sources")).toEqual(["app", "lib"]);
    expect(await named("/v1/syncgroups")).toEqual(["shop", "tools"]);
    const path = "/v1/namespaces/payments/syncs/shop.web?cluster=c2";
    expect(["Ready", "OutOfSync"]).toContain((await get(path)).status.state);
  });

  test("an apply goes through although rows of other objects are unreadable", async () => {
    await makeNewer(object("Source", "app"));
    await makeNewer(keys.fleet("c2"));
    await makeNewer(keys.owner({ namespace: "payments", kind: "SyncGroup", name: "tools" }));
    const answer = await api.call("POST", "/v1/apply", {
      documents: [
        syncGroup("new", [{ name: "web", source: "app" }]),
        sync("named", { cluster: "c2", source: "app" }),
        cluster("c3", { env: "prod" }),
      ],
    });
    expect(answer).toMatchObject({ status: 200, body: { items: [{ warnings: [] }, { warnings: [] }, {}] } });
    expect(api.takeMessages()).toContainEqual({
      to: "rollout",
      owner: { namespace: "payments", kind: "SyncGroup", name: "tools" },
      clusters: [],
    });
  });

  test("a reconcile with Sources asks the readable ones, and names the unreadable one", async () => {
    await api.call("POST", "/v1/apply", {
      documents: [
        syncGroup("both", [
          { name: "a", source: "app" },
          { name: "b", source: "lib" },
        ]),
      ],
    });
    await makeNewer(object("Source", "app"));
    api.takeMessages();
    const answer = await api.call("POST", "/v1/namespaces/payments/syncgroups/both/reconcile", { withSource: true });
    expect(answer).toMatchObject({ status: 200, body: { outcome: "configured" } });
    expect(answer.body.warnings).toEqual([
      expect.stringMatching(/^Source payments\/app was not asked: the row .* has schema 4/),
    ]);
    expect(api.takeMessages()).toContainEqual({ to: "resolve", source: { namespace: "payments", name: "lib" } });
  });

  test("a freeze covers a cluster with an unreadable entry only when it covers all clusters", async () => {
    await makeNewer(keys.fleet("c2"));
    const all = await api.call("POST", "/v1/freezes/all", { reason: "x" });
    expect(all).toMatchObject({ status: 200, body: { freeze: { status: { clusters: 2 } } } });
    const some = await api.call("POST", "/v1/freezes/some", { reason: "x", clusters: "env=prod" });
    expect(some).toMatchObject({ status: 200, body: { freeze: { status: { clusters: 1 } } } });
  });
});

describe("a command on a row that a newer version wrote", () => {
  const ns = "/v1/namespaces/payments";
  const reason = { reason: "x" };
  const verbs: readonly (readonly [string, RowKey, string, string, object | undefined])[] = [
    [
      "apply, together with a new Source",
      object("Source", "app"),
      "POST",
      "/v1/apply",
      { documents: [source("new"), source("app")] },
    ],
    ["apply as a dry run", object("Source", "app"), "POST", "/v1/apply", { documents: [source("app")], dryRun: true }],
    [
      "apply a Cluster whose entry in the fleet is newer",
      keys.fleet("c1"),
      "POST",
      "/v1/apply",
      { documents: [cluster("c1", { env: "dev" })] },
    ],
    ["delete a Source", object("Source", "app"), "DELETE", `${ns}/sources/app?confirm=true`, undefined],
    ["delete a SyncGroup", object("SyncGroup", "shop"), "DELETE", `${ns}/syncgroups/shop?confirm=true`, undefined],
    ["delete a Sync", object("Sync", "extra"), "DELETE", `${ns}/syncs/extra?confirm=true`, undefined],
    ["delete a Cluster", keys.cluster("c1"), "DELETE", "/v1/clusters/c1?confirm=true&cascade=orphan", undefined],
    [
      "delete a Cluster whose entry in the fleet is newer",
      keys.fleet("c1"),
      "DELETE",
      "/v1/clusters/c1?confirm=true&cascade=orphan",
      undefined,
    ],
    [
      "delete a Cluster whose lease is newer",
      keys.lease("c1"),
      "DELETE",
      "/v1/clusters/c1?confirm=true&cascade=orphan",
      undefined,
    ],
    [
      "delete a Cluster of which a Sync is newer",
      keys.sync("c1", "payments", "shop.web"),
      "DELETE",
      "/v1/clusters/c1?confirm=true&cascade=orphan",
      undefined,
    ],
    ["accept a Cluster", keys.cluster("c1"), "POST", "/v1/clusters/c1/accept", { uid: "b", confirm: true }],
    [
      "accept a Cluster of which a Sync is newer",
      keys.sync("c1", "payments", "shop.web"),
      "POST",
      "/v1/clusters/c1/accept",
      { uid: "b", confirm: true },
    ],
    ["suspend", object("SyncGroup", "shop"), "POST", `${ns}/syncgroups/shop/suspend`, reason],
    ["resume", object("SyncGroup", "shop"), "POST", `${ns}/syncgroups/shop/resume`, reason],
    ["reconcile", object("Source", "app"), "POST", `${ns}/sources/app/reconcile`, reason],
    ["refresh", object("SyncGroup", "shop"), "POST", `${ns}/syncgroups/shop/refresh`, reason],
    [
      "prune",
      keys.sync("c1", "payments", "shop.web"),
      "POST",
      `${ns}/syncs/shop.web/prune`,
      { cluster: "c1", uids: ["u"] },
    ],
    ["freeze", keys.freezeState, "POST", "/v1/freezes/x", reason],
    ["thaw", keys.freezeState, "DELETE", "/v1/freezes/x", undefined],
  ];

  test.each([...verbs])(
    "the API refuses the command on an unreadable row, and writes nothing: %s",
    async (_, key, method, path, body) => {
      await api.table.write([
        { update: keys.cluster("c1"), set: { status: { conditions: [], uid: "a", mismatch: "b" } } },
      ]);
      await makeNewer(key);
      const rows = api.table.all();
      const answer = await api.call(method, path, body);
      expect(answer).toMatchObject({ status: 409, body: { code: "NewerRow" } });
      expect(answer.body.message).toContain(
        `the row ${keyText(key)} has schema 4, and this version of Starling reads up to 3`,
      );
      expect(answer.body.message).toMatch(/update the stack to the version that wrote it$/);
      expect(api.table.all()).toEqual(rows);
      expect(api.takeMessages()).toEqual([]);
    },
  );
});
