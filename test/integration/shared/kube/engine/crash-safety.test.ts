import { beforeAll, describe, expect, test } from "vitest";
import type { ClusterClient } from "#shared/kube/cluster-client.ts";
import { applySet } from "#shared/kube/engine/apply-set.ts";
import { ensureParent } from "#shared/kube/engine/ensure-parent.ts";
import { listMembers } from "#shared/kube/engine/list-members.ts";
import { pruneSet } from "#shared/kube/engine/prune-set.ts";
import { changeInventory, type Inventory } from "#shared/kube/inventory.ts";
import { type ManifestObject, objectIdOf } from "#shared/kube/kube-object.ts";
import { describeObject, objectIdKey } from "#shared/kube/object-id.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { claimFor, configMap, inSeconds, manifest, namespace } from "#test/support/cluster-fixture.ts";
import { applyRequest, engineWorld, inventoryOf, pruneRequest, recorded } from "#test/support/engine-world.ts";
import { forAllTests } from "#test/support/for-tests.ts";

class Crash extends Error {}

/**
 * The client of a process that dies at its n-th request: before the request is sent, or after the server has carried
 * it out and before the answer is read. From then on it does nothing.
 */
function dyingClient(client: ClusterClient, at: { readonly request: number; readonly when: "before" | "after" }) {
  let count = 0;
  let dead = false;
  const running = new Set<Promise<unknown>>();
  const dying = new Proxy(client, {
    get(target, name, receiver) {
      const member: unknown = Reflect.get(target, name, receiver);
      if (typeof member !== "function" || name === "forgetKinds" || name === "lookup") {
        return typeof member === "function" ? member.bind(target) : member;
      }
      return async (...args: unknown[]) => {
        if (dead) throw new Crash();
        count += 1;
        const mine = count === at.request;
        if (mine) dead = true;
        if (mine && at.when === "before") throw new Crash();
        const answer = Reflect.apply(member, target, args) as Promise<unknown>;
        running.add(answer);
        const value = await answer.finally(() => running.delete(answer));
        if (dead) throw new Crash();
        return value;
      };
    },
  });
  return { client: dying, settled: () => Promise.allSettled(running), requests: () => count };
}

/** The data that outlive a process: the inventory and the renderings. */
interface Store {
  inventory: Inventory;
  settledThrough: number | undefined;
  readonly renderings: Map<string, readonly ManifestObject[]>;
}

/** One attempt in the order of durable writes that a worker keeps: claim, apply, prune, store. */
async function attempt(client: ClusterClient, store: Store, at: { readonly set: string; readonly number: number }) {
  const renderDigest = `sha256:${at.number}`;
  const claim = claimFor(at.set, { attempt: at.number, fence: at.number, renderDigest });
  const rendering = store.renderings.get(renderDigest) ?? [];
  const known = store.settledThrough === undefined ? {} : { settledThrough: store.settledThrough };
  const parent = await ensureParent(client, { claim, groupKinds: [], ...known });
  if (parent.kind === "refused") throw new Error(parent.message);
  const deadline = inSeconds(30);
  const applied = await applySet(client, applyRequest(at.set, rendering, { inventory: store.inventory, deadline }));
  expect(applied.outcome).toBe("applied");
  const inventory = recorded(store.inventory, applied);
  const inInventory = new Set(inventory.entries.map(({ id }) => objectIdKey(id)));
  const attempted = parent.record.attempted.flatMap((digest) => store.renderings.get(digest) ?? []);
  const unrecorded = attempted.map((object) => objectIdOf(object)).filter((id) => !inInventory.has(objectIdKey(id)));
  const pruned = await pruneSet(client, pruneRequest({ claim, inventory }, rendering, { unrecorded, deadline }));
  if (pruned.outcome !== "done") throw new Error(`prune: ${JSON.stringify(pruned)}`);
  store.inventory = changeInventory(inventory, { recorded: [], settled: pruned.settled });
  store.settledThrough = at.number;
}

describe.each(clusterTargets)("a worker that dies at any request, on $name", ({ start }) => {
  const cluster = forAllTests(async () => engineWorld(await start()));

  beforeAll(async () => {
    const names = namespace("crash");
    await cluster.raw("POST", "/api/v1/namespaces", { body: names });
    await cluster.raw("POST", "/api/v1/namespaces/crash/configmaps", { body: configMap("crash/theirs") });
  });

  const account = (at: string) =>
    manifest({ apiVersion: "v1", kind: "ServiceAccount", metadata: { name: at, namespace: "crash" } });

  async function membersOf(inventory: Inventory): Promise<readonly string[]> {
    const found: string[] = [];
    for (const kind of ["ConfigMap", "ServiceAccount"]) {
      const info = await cluster.client.lookup({ group: "", kind });
      if (info.outcome !== "found") throw new Error(kind);
      const members = await listMembers(cluster.client, info.info, { setId: inventory.setId, namespaces: [] });
      found.push(...members.map((member) => describeObject(objectIdOf(member, info.info))));
    }
    return found.sort();
  }

  /** Runs the second of three attempts with a client that dies; the third must repair everything. */
  async function crashAt(request: number, when: "before" | "after"): Promise<"died" | "lived"> {
    const set = `crash-${when}-${request}`;
    const name = (suffix: string) => `${set}-${suffix}`;
    const store: Store = { inventory: inventoryOf(set), settledThrough: undefined, renderings: new Map() };
    const kept = configMap(`crash/${name("kept")}`);
    store.renderings.set("sha256:1", [kept, configMap(`crash/${name("first")}`), account(name("first"))]);
    store.renderings.set("sha256:2", [kept, configMap(`crash/${name("second")}`), account(name("second"))]);
    store.renderings.set("sha256:3", [kept, configMap(`crash/${name("third")}`)]);
    await attempt(cluster.client, store, { set, number: 1 });

    const dying = dyingClient(cluster.client, { request, when });
    const died = await attempt(dying.client, store, { set, number: 2 }).then(
      () => false,
      (error: unknown) => {
        if (!(error instanceof Crash)) throw error;
        return true;
      },
    );
    await dying.settled();

    await attempt(cluster.client, store, { set, number: 3 });
    const expected = [`ConfigMap crash/${name("kept")}`, `ConfigMap crash/${name("third")}`];
    expect(await membersOf(store.inventory)).toEqual(expected);
    expect(store.inventory.entries.map(({ id }) => describeObject(id)).sort()).toEqual(expected);
    return died ? "died" : "lived";
  }

  test.each(["before", "after"] as const)(
    "the next attempt repairs everything after a worker dies %s the effect of any request",
    async (when) => {
      let deaths = 0;
      for (let request = 1; (await crashAt(request, when)) === "died"; request += 1) deaths += 1;
      expect(deaths).toBeGreaterThan(10);
      expect(await cluster.statusOf("/api/v1/namespaces/crash/configmaps/theirs")).toBe(200);
    },
  );
});
