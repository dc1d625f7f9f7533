/** The overview of a group, as the API returns it. */
import { describe, expect, test } from "vitest";
import { defined } from "#shared/base/defined.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { Artifact } from "#shared/fleet/rows/object-rows.ts";
import type { CatchUpRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { Write } from "#shared/ports.ts";
import { type ApiFixture, apiFixture, source, sync, syncGroup } from "#test/unit/functions/api/api-fixture.ts";
import { rolloutStateRow, sayTaken, shop, storeRollout, syncRow } from "#test/unit/functions/api/row-fixture.ts";

const path = "/v1/namespaces/payments/syncgroups/shop/rollout";
const artifact: Artifact = {
  revision: "main@sha1:0ab3f9e",
  digest: "sha256:22",
  sizeBytes: 1,
  files: 1,
  storedAt: "2026-11-20T07:59:00.000Z",
  subject: "raise the timeout",
  author: "ana@acme.io",
};

async function withGroup(): Promise<ApiFixture> {
  const api = apiFixture();
  const group = syncGroup("shop", [{ name: "web", source: "app" }]);
  const rollout = { maxConcurrent: 2, stages: [{ name: "canary", clusters: { names: ["c1"] } }, { name: "rest" }] };
  await api.call("POST", "/v1/apply", { documents: [source("app"), { ...group, spec: { ...group.spec, rollout } }] });
  return api;
}

/** The current rollout of canary is 12; rest has 11, and is updating to 12. */
async function underWay(): Promise<ApiFixture> {
  const api = await withGroup();
  await storeRollout(api, { number: 11, states: { canary: ["Succeeded"], rest: ["Succeeded", "Succeeded"] } });
  await storeRollout(api, {
    number: 12,
    states: { canary: ["Succeeded"], rest: ["Applying", "Assigned", "Waiting", "Waiting"] },
  });
  const { observed: _observed, ...unbegun } = syncRow("c3", "shop.web");
  await api.table.write([{ put: syncRow("c2", "shop.web", { phase: "Applying" }) }, { put: unbegun }]);
  return api;
}

describe("the overview of a group", () => {
  test("the overview has each stage's current rollout, its stage run in progress, and the waits", async () => {
    const { body } = await (await underWay()).call("GET", path);
    expect(body).toMatchObject({
      apiVersion: "starling.dev/v1alpha1",
      kind: "RolloutOverview",
      metadata: { name: "shop", namespace: "payments" },
      spec: { owner: shop, strategy: { maxConcurrent: 2, maxUnreachable: "10%" } },
      status: {
        newest: 12,
        rollouts: [
          { number: 12, phase: "Rolling" },
          { number: 11, phase: "Complete" },
        ],
        stages: [
          { name: "canary", members: 1, current: 12, passed: { rollout: 12, phase: "Passed" }, changing: 0 },
          {
            name: "rest",
            members: 4,
            current: 11,
            updatingTo: {
              rollout: 12,
              snapshot: 0,
              phase: "Updating",
              size: 4,
              counts: { Assigned: 2, Waiting: 2 },
              allows: { failures: 0, unreachable: 1 },
            },
            changing: 2,
          },
        ],
        slots: { used: 2, bound: 2 },
        catchUps: { waiting: 0, changing: 0, failed: 0 },
        waits: [
          {
            reason: "slots",
            stage: "rest",
            clusters: { count: 2 },
            message: "2 clusters wait: 2 of 2 slots are in use; oldest: c2, Applying",
            clear: [{ verb: "pace", field: "maxConcurrent" }],
          },
          { reason: "worker", clusters: { count: 1, names: ["c3"] }, message: "1 assigned and not begun: c3" },
          {
            reason: "source",
            message: "template web: Source app has no artifact yet; see: starling describe source/app -n payments",
            clear: [],
          },
        ],
      },
    });
    expect(body.status.stages[0]).not.toHaveProperty("updatingTo");
    expect(body.status).not.toHaveProperty("desired");
  });

  test("the overview names the Sync on which a worker works instead, from the lease of the cluster", async () => {
    const api = await underWay();
    const begun = { sync: "search/geo", desired: "sha256:1", alone: false };
    const lease = {
      type: "Lease",
      schema: 1,
      version: 1,
      fence: 1,
      desired: 1,
      owner: "w",
      leaseUntil: "2026-11-20T08:00:30.000Z",
      begun,
    } as const;
    await api.table.write([{ put: { ...keys.lease("c3"), ...lease } }]);
    const { body } = await api.call("GET", path);
    expect(body.status.waits[1]).toMatchObject({
      reason: "worker",
      blocker: "search/geo",
      message: "1 assigned and not begun: the worker of c3 is busy with search/geo",
    });
  });

  test("the overview names a desired revision that no rollout has yet", async () => {
    const api = await underWay();
    await api.table.write([
      { update: keys.object("payments", "Source", "app"), set: { status: { artifact, conditions: [] } } },
    ]);
    expect((await api.call("GET", path)).body.status).toMatchObject({ desired: "main@sha1:0ab3f9e" });
    await sayTaken(api.table, shop, artifact);
    expect((await api.call("GET", path)).body.status).not.toHaveProperty("desired");
  });

  test("the overview names failed catch-ups and freezes", async () => {
    const api = await underWay();
    const failed = {
      type: "CatchUp",
      schema: 1,
      version: 1,
      why: "joined",
      since: "2026-11-20T07:55:00.000Z",
      reason: "ApplyFailed",
    } as const;
    const put = (cluster: string, name: string): Write => {
      const row: CatchUpRow = { ...keys.catchUp({ ...shop, name }, "failed", cluster), ...failed, cluster };
      return { put: row };
    };
    await api.table.write([
      { update: keys.rolloutState(shop), set: { catchUps: { waiting: 0, changing: 0, failed: 1 } } },
      put("c9", "shop"),
      // A catch-up of another group whose name begins alike.
      put("c8", "shop2"),
    ]);
    await api.call("POST", "/v1/freezes/all", { reason: "INC-1" });
    const { waits } = (await api.call("GET", path)).body.status;
    expect(waits).toMatchObject([
      { reason: "frozen", blocker: "all", clear: [{ verb: "thaw", freeze: "all" }] },
      { reason: "catchUps", clusters: { count: 1, names: ["c9"] }, clear: [{ verb: "reconcile" }] },
      { reason: "worker" },
      { reason: "source" },
    ]);
  });

  test("the overview reads no slots while no cluster is changing", async () => {
    const api = await withGroup();
    await storeRollout(api, { number: 11, states: { canary: ["Succeeded"], rest: ["Succeeded"] } });
    const { body } = await api.call("GET", path);
    expect(body.status).toMatchObject({
      slots: { used: 0, bound: 2 },
      waits: [{ reason: "source" }],
      rollouts: [{ number: 11, phase: "Complete" }],
    });
  });

  test("a Sync that a user wrote has an overview, too", async () => {
    const api = apiFixture();
    await api.call("POST", "/v1/apply", { documents: [sync("extra", { cluster: "c1", source: "app" })] });
    const owner = { namespace: "payments", kind: "Sync", name: "extra" } as const;
    await storeRollout(api, {
      number: 3,
      owner,
      states: { all: ["Failed"] },
      stageRuns: { all: { phase: "Halted", message: "why" } },
    });
    const { body } = await api.call("GET", "/v1/namespaces/payments/syncs/extra/rollout");
    expect(body).toMatchObject({
      spec: { owner },
      status: {
        stages: [{ name: "all", updatingTo: { phase: "Halted" } }],
        waits: [{ reason: "budget", clear: [{ verb: "retry" }, { verb: "refresh" }] }, { reason: "source" }],
      },
    });
  });

  test.each(["NoClusters", "ClusterNotFound"] as const)(
    "a group with %s has an overview before its first rollout",
    async (state) => {
      const api = await withGroup();
      const row = await api.table.get(keys.object("payments", "SyncGroup", "shop"));
      await api.table.write([
        { put: rolloutStateRow([], { ...defined({ uid: row?.uid }) }) },
        { update: keys.object("payments", "SyncGroup", "shop"), set: { status: { ...row?.status, state } } },
      ]);
      expect((await api.call("GET", path)).body).toMatchObject({ status: { state, newest: 0, rollouts: [] } });
    },
  );

  test("there is no overview before the first rollout, of a deleted group of the same name, or of an unknown group", async () => {
    const api = await withGroup();
    expect(await api.call("GET", path)).toMatchObject({
      status: 404,
      body: { message: "SyncGroup payments/shop has no rollout yet" },
    });
    await storeRollout(api, {
      number: 11,
      states: { rest: ["Succeeded"] },
      rolloutState: { uid: "uid-of-the-one-before" },
    });
    expect(await api.call("GET", path)).toMatchObject({
      status: 404,
      body: { message: "SyncGroup payments/shop has no rollout yet" },
    });
    expect(await api.call("GET", "/v1/namespaces/payments/syncgroups/none/rollout")).toMatchObject({
      status: 404,
      body: { message: "SyncGroup payments/none does not exist" },
    });
    expect((await api.call("POST", path, {})).status).toBe(405);
  });
});
