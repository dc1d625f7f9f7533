/** The guard of a Sync's objects: a worker asks before it prunes more of them than a group allows. */
import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import type { Observed, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { ClusterClient } from "#shared/kube/cluster-client.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import { listAt, stringAt } from "#shared/kube/kube-object.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { clientWith } from "#test/support/client-with.ts";
import { clusterFixture, configMap, namespace } from "#test/support/cluster-fixture.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { watchedClient } from "#test/support/watched-client.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

function refused(method: string, status: number, reason: string): KubeError {
  const request = { method, path: "/", secret: false };
  return new KubeError(request, { status, reason, message: "not today", causes: [] });
}

const letters = (count: number) => Array.from({ length: count }, (_, index) => `o${index}`);

describe.each(clusterTargets)("the guard of a Sync's objects on $name", ({ start }) => {
  const cluster = forAllTests(async () => clusterFixture(await start()));

  class GuardedWorld extends WorkerWorld {
    readonly name = `guarded-${randomUUID().slice(0, 8)}`;
    /** Paths of the objects whose deletion was sent. */
    readonly deleted: string[];

    constructor(methods: Partial<ClusterClient> = {}, through = cluster.client) {
      const deleted: string[] = [];
      const client = clientWith(through, {
        delete(...call) {
          deleted.push(call[1].name);
          return through.delete(...call);
        },
        ...methods,
      });
      super({ connect: async () => client, distrust() {} });
      this.deleted = deleted;
    }

    async give(names: readonly string[], more: Partial<SyncRow["desired"]> = {}): Promise<Observed> {
      await this.assign(
        this.name,
        [namespace(this.name), ...names.map((name) => configMap(`${this.name}/${name}`))],
        {},
        { group: "web", objectBounds: ["50%"], ...more },
      );
      await this.work();
      return this.observed();
    }

    observed(): Promise<Observed> {
      return this.observedOf(this.name);
    }

    /** Names of the objects that exist. */
    async living(): Promise<readonly string[]> {
      const list = await cluster.raw("GET", `/api/v1/namespaces/${this.name}/configmaps`);
      const names = listAt(list, "items").map((item) => stringAt(item, "metadata", "name") ?? "");
      return names.filter((name) => name.startsWith("o")).sort();
    }
  }

  const begin = (methods?: Partial<ClusterClient>) => new GuardedWorld(methods).begin();

  test("a prune of more objects ends the attempt before the first deletion, and its hash lets it through", async () => {
    const world = await begin();
    await world.give(letters(11));
    const found = await world.give(letters(4));
    expect(found).toMatchObject({
      phase: "Failed",
      reason: "PruneGuard",
      guardedPrune: { count: 7, members: 12, allowed: 6 },
    });
    expect(found.message).toContain("7 of 12 objects would be pruned");
    expect(found.message).toContain(`starling guard approve web -n tests --hash ${found.guardedPrune?.hash}`);
    expect(world.deleted).toEqual([]);
    expect(await world.living()).toEqual(letters(11).sort());

    const other = await world.give(letters(3), { mayPrune: [found.guardedPrune?.hash ?? ""] });
    expect(other).toMatchObject({ reason: "PruneGuard", guardedPrune: { count: 8 } });
    expect(world.deleted).toEqual([]);

    const through = await world.give(letters(4), { mayPrune: [found.guardedPrune?.hash ?? ""] });
    expect(through).toMatchObject({ phase: "Ready" });
    expect(through).not.toHaveProperty("guardedPrune");
    expect(world.deleted).toHaveLength(7);
    expect(await world.living()).toEqual(letters(4).sort());
  });

  test("nothing is deleted that the guard withholds, whichever call of the worker fails", {
    timeout: 60_000,
  }, async () => {
    let [calls, at] = [0, Number.POSITIVE_INFINITY];
    const deleted: string[] = [];
    const client = watchedClient(cluster.client, async ({ method, name }) => {
      if (method === "delete") deleted.push(name);
      if (++calls === at) throw refused("GET", 500, "InternalError");
    });
    for (at = 1; ; at += 1) {
      const world = await new GuardedWorld({}, client).begin();
      const failing = at;
      at = Number.POSITIVE_INFINITY;
      await world.give(letters(11));
      [calls, at] = [0, failing];
      await world.give(letters(4));
      const hasFailed = calls >= at;
      world.aheadMs += 700_000;
      await world.work();
      expect([at, deleted, await world.living()]).toEqual([at, [], letters(11).sort()]);
      if (!hasFailed) break;
    }
    expect(at).toBeGreaterThan(8);
  });

  test("as many objects as the guard allows are pruned without a question", async () => {
    const world = await begin();
    await world.give(letters(11));
    expect(await world.give(letters(5))).toMatchObject({ phase: "Ready" });
    expect(world.deleted).toHaveLength(6);
  });

  test("new objects do not dilute the share: a renaming of all is a prune of all", async () => {
    const world = await begin();
    await world.give(letters(11));
    const renamed = letters(30).slice(11);
    expect(await world.give(renamed)).toMatchObject({
      reason: "PruneGuard",
      guardedPrune: { count: 11, members: 12, allowed: 6 },
    });
    expect(world.deleted).toEqual([]);
  });

  test("a share of fewer than five objects is no bound, and a number is", async () => {
    const world = await begin();
    await world.give(letters(3));
    expect(await world.give([])).toMatchObject({ phase: "Ready" });
    expect(world.deleted).toHaveLength(3);
    await world.give(letters(3));
    const found = await world.give(letters(1), { objectBounds: ["100%", 1] });
    expect(found).toMatchObject({ reason: "PruneGuard", guardedPrune: { count: 2, members: 4, allowed: 1 } });
  });

  test("unrecorded objects of an attempt that died count like others", async () => {
    const world = await begin();
    await world.give(letters(5));
    const row = await world.sync(world.name);
    // The worker died after it had applied all of them, and before it stored that.
    await world.give(letters(11));
    const after = await world.sync(world.name);
    if (row?.observed === undefined || after === undefined) throw new Error("it was assigned");
    const forgotten: SyncRow = { ...after, observed: row.observed, version: after.version + 1 };
    await world.table.write([{ put: forgotten }]);
    const found = await world.give(letters(5), { objectBounds: [5] });
    expect(found).toMatchObject({ reason: "PruneGuard", guardedPrune: { count: 6 } });
    expect(world.deleted).toEqual([]);
    expect(await world.living()).toHaveLength(11);
  });

  test("objects of a kind that cannot be listed count: they are not absent", async () => {
    let isBlind = false;
    const world = await begin({
      list(kind, query) {
        return isBlind && kind.kind === "ConfigMap"
          ? Promise.reject(refused("GET", 403, "Forbidden"))
          : cluster.client.list(kind, query);
      },
    });
    await world.give(letters(11));
    isBlind = true;
    expect(await world.give([])).toMatchObject({ reason: "PruneGuard", guardedPrune: { count: 11 } });
    expect(world.deleted).toEqual([]);
  });

  test("an approved prune that needs more than one run is not asked about again", async () => {
    let sent = 0;
    const world = await begin({
      delete(...call) {
        sent += 1;
        return sent > 5 && sent <= 11
          ? Promise.reject(refused("DELETE", 500, "InternalError"))
          : cluster.client.delete(...call);
      },
    });
    await world.give(letters(11));
    const { guardedPrune } = await world.give([]);
    expect(sent).toBe(0);
    const going = await world.give([], { mayPrune: [guardedPrune?.hash ?? ""] });
    expect(going).toMatchObject({ phase: "Retrying", reason: "PruneFailed" });
    expect(await world.living()).toHaveLength(6);
    for (let run = 0; run < 2; run += 1) {
      world.aheadMs += 60_000;
      await world.work();
    }
    expect(await world.observed()).toMatchObject({ phase: "Ready" });
    expect(await world.living()).toEqual([]);
  });

  test("objects that are gone already, or marked to stay, are not counted", async () => {
    const world = await begin();
    await world.give(letters(11));
    const path = (name: string) => `/api/v1/namespaces/${world.name}/configmaps/${name}`;
    await cluster.raw("DELETE", path("o10"));
    await cluster.raw("PATCH", path("o9"), {
      body: { metadata: { annotations: { "starling.dev/prune": "disabled" } } },
      as: "merge-patch",
    });
    const found = await world.give(letters(2), { objectBounds: [1] });
    expect(found).toMatchObject({ reason: "PruneGuard", guardedPrune: { count: 7 } });
  });
});
