import { describe, expect, test } from "vitest";
import { systemClock } from "#shared/adapters/system.ts";
import { deleteSet } from "#shared/kube/engine/delete-set.ts";
import { ensureParent } from "#shared/kube/engine/ensure-parent.ts";
import { type PruneResult, type PruneSetRequest, pruneSet } from "#shared/kube/engine/prune-set.ts";
import { changeInventory, type Inventory } from "#shared/kube/inventory.ts";
import { type ManifestObject, objectIdOf } from "#shared/kube/kube-object.ts";
import { partOfLabel } from "#shared/kube/membership.ts";
import { parentName, type SyncClaim } from "#shared/kube/parent-object.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import {
  claimFor,
  configMap,
  definition,
  deployment,
  inSeconds,
  manifest,
  namespace,
  widget,
} from "#test/support/cluster-fixture.ts";
import { cutOffClient } from "#test/support/cut-off-client.ts";
import { engineWorld, pruneRequest } from "#test/support/engine-world.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { watchedClient } from "#test/support/watched-client.ts";

describe.each(clusterTargets)("pruneSet on $name", ({ start }) => {
  const cluster = forAllTests(async () => engineWorld(await start()));

  interface Applied {
    readonly claim: SyncClaim;
    readonly inventory: Inventory;
  }

  async function applied(set: string, objects: readonly ManifestObject[]): Promise<Applied> {
    const claim = claimFor(set);
    await ensureParent(cluster.client, { claim, groupKinds: [] });
    return { claim, inventory: await cluster.applied(set, objects) };
  }

  function prune(set: Applied, keep: readonly ManifestObject[], rest?: Partial<PruneSetRequest>): Promise<PruneResult> {
    return pruneSet(cluster.client, pruneRequest(set, keep, rest));
  }

  const outcomes = (result: PruneResult) =>
    result.outcome === "refused"
      ? result.reason
      : Object.fromEntries(result.objects.map(({ id, outcome }) => [`${id.kind} ${id.name}`, outcome]));
  const configPath = (ns: string, name = "c") => `/api/v1/namespaces/${ns}/configmaps/${name}`;

  test("a prune deletes only the objects that left the set", async () => {
    const keep = [namespace("leave"), configMap("leave/stays")];
    const set = await applied("leave", [...keep, configMap("leave/c"), deployment("leave/web")]);
    const result = await prune(set, keep);
    expect(result).toMatchObject({ outcome: "done" });
    expect(outcomes(result)).toEqual({ "Deployment web": "deleted", "ConfigMap c": "deleted" });
    expect(await cluster.statusOf(configPath("leave"))).toBe(404);
    expect(await cluster.statusOf(configPath("leave", "stays"))).toBe(200);
    if (result.outcome === "refused") throw new Error("refused");
    const after = changeInventory(set.inventory, { recorded: [], settled: result.settled });
    expect(after.entries.map(({ id }) => id.name)).toEqual(["leave", "stays"]);
  });

  test("a deleted object is read again only if the server did not report that it is gone", async () => {
    const keep = [namespace("said")];
    const service = manifest({
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "s", namespace: "said" },
      spec: { ports: [{ name: "http", port: 80 }], selector: { app: "web" } },
    } as never);
    const set = await applied("said", [...keep, configMap("said/c"), service]);
    const calls: string[] = [];
    const client = watchedClient(cluster.client, async ({ method, name }) => {
      calls.push(`${method} ${name}`);
    });
    expect(await pruneSet(client, pruneRequest(set, keep))).toMatchObject({ outcome: "done" });
    const about = (name: string) => calls.filter((call) => call.endsWith(` ${name}`));
    expect(about("c")).toEqual(["get c", "delete c"]);
    expect(about("s")).toEqual(["get s", "delete s", "get s"]);
  });

  test("an object that is gone already counts as deleted", async () => {
    const keep = [namespace("already")];
    const set = await applied("already", [...keep, configMap("already/c")]);
    await cluster.raw("DELETE", configPath("already"));
    expect(outcomes(await prune(set, keep))).toEqual({ "ConfigMap c": "absent" });
  });

  /** Legend: name, the change to ConfigMap c before the prune, the outcome. The object must survive. */
  const survivors: readonly (readonly [string, (ns: string) => Promise<unknown>, string])[] = [
    [
      "another object has its name",
      async (ns) => {
        await cluster.raw("DELETE", configPath(ns));
        await cluster.raw("POST", `/api/v1/namespaces/${ns}/configmaps`, { body: configMap(`${ns}/c`) });
      },
      "foreign",
    ],
    [
      "its label was removed",
      (ns) =>
        cluster.raw("PATCH", configPath(ns), {
          as: "merge-patch",
          body: { metadata: { labels: { [partOfLabel]: null } } },
        }),
      "foreign",
    ],
    [
      "another set took it over",
      (ns) =>
        cluster.raw("PATCH", configPath(ns), {
          as: "merge-patch",
          body: { metadata: { labels: { [partOfLabel]: "applyset-theirs-v1" } } },
        }),
      "foreign",
    ],
    [
      "Flux applies it, with its marks",
      (ns) => {
        const labels = { "kustomize.toolkit.fluxcd.io/name": "apps" };
        const { metadata, ...theirs } = configMap(`${ns}/c`);
        return cluster.raw("PATCH", `${configPath(ns)}?fieldManager=kustomize-controller&force=true`, {
          as: "apply-patch",
          body: { ...theirs, metadata: { ...metadata, labels } },
        });
      },
      "foreign",
    ],
    [
      "a controller owns it",
      (ns) => {
        const owner = { apiVersion: "v1", kind: "Pod", name: "p", uid: "u", controller: true };
        return cluster.raw("PATCH", configPath(ns), {
          as: "merge-patch",
          body: { metadata: { ownerReferences: [owner] } },
        });
      },
      "foreign",
    ],
    [
      "it is marked to be kept",
      (ns) => {
        const annotations = { "helm.sh/resource-policy": "keep" };
        return cluster.raw("PATCH", configPath(ns), { as: "merge-patch", body: { metadata: { annotations } } });
      },
      "kept",
    ],
  ];
  test.each(survivors.map((row, index) => [...row, index] as const))(
    "an object is not deleted if %s",
    async (_n, plant, outcome, index) => {
      const ns = `survivor-${index}`;
      const keep = [namespace(ns)];
      const set = await applied(ns, [...keep, configMap(`${ns}/c`)]);
      await plant(ns);
      const result = await prune(set, keep);
      expect(outcomes(result)).toEqual({ "ConfigMap c": outcome });
      expect(result).toMatchObject({ outcome: "done", settled: [{ name: "c" }] });
      expect(await cluster.statusOf(configPath(ns))).toBe(200);
    },
  );

  test("an object that is also applied under another API group is never deleted", async () => {
    const keep = [namespace("regroup")];
    const set = await applied("regroup", [...keep, configMap("regroup/c")]);
    const uids = new Set(set.inventory.entries.map(({ uid }) => uid));
    expect(outcomes(await prune(set, keep, { keepUids: uids }))).toEqual({ "ConfigMap c": "moved" });
    expect(await cluster.statusOf(configPath("regroup"))).toBe(200);
  });

  test("an object with a finalizer stays in the inventory until it is gone", async () => {
    const keep = [namespace("held")];
    const set = await applied("held", [...keep, configMap("held/c")]);
    const hold = { metadata: { finalizers: ["example.com/hold"] } };
    await cluster.raw("PATCH", configPath("held"), { as: "merge-patch", body: hold });
    const first = await prune(set, keep);
    expect(first).toMatchObject({
      outcome: "waiting",
      settled: [],
      objects: [{ outcome: "terminating", message: expect.stringContaining("example.com/hold") }],
    });
    expect(outcomes(await prune(set, keep))).toEqual({ "ConfigMap c": "terminating" });
    await cluster.raw("PATCH", configPath("held"), { as: "merge-patch", body: { metadata: { finalizers: null } } });
    expect(await prune(set, keep)).toMatchObject({ outcome: "done", objects: [{ outcome: "absent" }] });
  });

  test("a Namespace with a foreign object in it is not deleted", async () => {
    const set = await applied("guarded", [namespace("guarded")]);
    await cluster.raw("POST", "/api/v1/namespaces/guarded/configmaps", { body: configMap("guarded/theirs") });
    const result = await prune(set, []);
    expect(result).toMatchObject({
      outcome: "waiting",
      objects: [{ outcome: "waiting", message: expect.stringContaining("ConfigMap guarded/theirs") }],
    });
    expect(await cluster.statusOf("/api/v1/namespaces/guarded")).toBe(200);
  });

  test("the cluster's own Namespaces are never deleted", async () => {
    const set = await applied("own-ns", [manifest({ ...namespace("default") })]);
    expect(outcomes(await prune(set, []))).toEqual({ "Namespace default": "kept" });
  });

  test("a definition is deleted only when it has no foreign objects", async () => {
    const group = "inuse.example.com";
    const keep = [namespace("inuse")];
    const set = await applied("inuse", [...keep, definition(group), widget(group, "inuse/ours")]);
    const path = `/apis/${group}/v1/namespaces/inuse/widgets`;
    await cluster.raw("POST", path, { body: widget(group, "inuse/theirs") });
    const kept = await prune(set, keep);
    expect(outcomes(kept)).toEqual({
      "Widget ours": "deleted",
      [`CustomResourceDefinition widgets.${group}`]: "waiting",
    });
    expect(await cluster.statusOf(`${path}/theirs`)).toBe(200);
    await cluster.raw("DELETE", `${path}/theirs`);
    await expect.poll(async () => (await prune(set, keep)).outcome, { timeout: 10_000 }).toBe("done");
  });

  test("an operator stays until the custom resources that it finalizes are gone", async () => {
    const group = "operated.example.com";
    const keep = [namespace("operated")];
    const objects = [definition(group), widget(group, "operated/w"), deployment("operated/operator")];
    const set = await applied("operated", [...keep, ...objects]);
    const path = `/apis/${group}/v1/namespaces/operated/widgets/w`;
    const hold = { metadata: { finalizers: ["example.com/hold"] } };
    await cluster.raw("PATCH", path, { as: "merge-patch", body: hold });
    expect(outcomes(await prune(set, keep))).toEqual({
      "Widget w": "terminating",
      "Deployment operator": "waiting",
      [`CustomResourceDefinition widgets.${group}`]: "waiting",
    });
    await cluster.raw("PATCH", path, { as: "merge-patch", body: { metadata: { finalizers: null } } });
    await expect.poll(async () => (await prune(set, keep)).outcome, { timeout: 10_000 }).toBe("done");
    expect(await cluster.statusOf("/apis/apps/v1/namespaces/operated/deployments/operator")).toBe(404);
  });

  test("objects that a crashed attempt left are found and deleted, and foreign objects are not", async () => {
    const keep = [namespace("crashed")];
    const set = await applied("crashed", [...keep, configMap("crashed/c")]);
    const lost = {
      ...set,
      inventory: { ...set.inventory, entries: set.inventory.entries.filter(({ id }) => id.name !== "c") },
    };
    await cluster.raw("POST", "/api/v1/namespaces/crashed/configmaps", { body: configMap("crashed/theirs") });
    const unrecorded = [configMap("crashed/c"), configMap("crashed/theirs"), configMap("crashed/never")].map((object) =>
      objectIdOf(object),
    );
    const result = await prune(lost, keep, { unrecorded });
    expect(outcomes(result)).toEqual({
      "ConfigMap c": "deleted",
      "ConfigMap theirs": "foreign",
      "ConfigMap never": "absent",
    });
    expect(await cluster.statusOf(configPath("crashed", "theirs"))).toBe(200);
  });

  test("an unrecorded object with a namespace that does not fit its kind counts as absent", async () => {
    const keep = [namespace("placed")];
    const set = await applied("placed", keep);
    const elsewhere = { ...objectIdOf(configMap("placed/c")), namespace: "" };
    const namespaced = { ...objectIdOf(namespace("placed-too")), namespace: "placed" };
    const result = await prune(set, keep, { unrecorded: [elsewhere, namespaced] });
    expect(result.outcome).toBe("done");
    expect(outcomes(result)).toEqual({ "ConfigMap c": "absent", "Namespace placed-too": "absent" });
  });

  test("a prune stops if a newer worker has written the parent", async () => {
    const keep = [namespace("zombie")];
    const set = await applied("zombie", [...keep, configMap("zombie/c")]);
    await ensureParent(cluster.client, { claim: claimFor("zombie", { fence: 2 }), groupKinds: [] });
    expect(outcomes(await prune(set, keep))).toBe("ClusterAhead");
    expect(await cluster.statusOf(configPath("zombie"))).toBe(200);
  });

  test("a prune starts no deletion after the deadline", async () => {
    const keep = [namespace("late")];
    const set = await applied("late", [...keep, configMap("late/c")]);
    expect(outcomes(await prune(set, keep, { deadline: inSeconds(-1) }))).toEqual({ "ConfigMap c": "waiting" });
    expect(await cluster.statusOf(configPath("late"))).toBe(200);
  });

  test("a deletion that the deadline cuts off is checked in the next run, and is no failure", async () => {
    const keep = [namespace("cut")];
    const set = await applied("cut", [...keep, configMap("cut/c")]);
    const deadline = inSeconds(60);
    const asked = { verb: "delete", kind: "ConfigMap", path: configPath("cut"), deadline } as const;
    const { client, clock } = cutOffClient(cluster.client, asked);
    const request = pruneRequest(set, keep, { deadline, clock });
    const result = await pruneSet(client, request);
    expect(result.outcome).toBe("waiting");
    expect(outcomes(result)).toEqual({ "ConfigMap c": "waiting" });
    expect(outcomes(await prune(set, keep))).toEqual({ "ConfigMap c": "absent" });
  });

  test("the objects of a kind that no longer exists count as absent", async () => {
    const group = "vanished.example.com";
    const keep = [namespace("vanished")];
    const set = await applied("vanished", [...keep, definition(group), widget(group, "vanished/w")]);
    const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.${group}`;
    await cluster.raw("DELETE", path);
    await expect.poll(() => cluster.statusOf(path), { timeout: 10_000 }).toBe(404);
    cluster.client.forgetKinds();
    await expect
      .poll(async () => outcomes(await prune(set, keep)), { timeout: 10_000 })
      .toEqual({ "Widget w": "absent", [`CustomResourceDefinition widgets.${group}`]: "absent" });
  });

  test("deleteSet removes every member and then the parent", async () => {
    const set = await applied("whole", [configMap("default/whole-a"), configMap("default/whole-b")]);
    const request = { ...set, unrecorded: [], clock: systemClock, deadline: inSeconds(60) };
    expect(await deleteSet(cluster.client, request)).toMatchObject({ outcome: "done" });
    const parent = `/api/v1/namespaces/starling-system/configmaps/${parentName(set.claim)}`;
    expect(await cluster.statusOf(parent)).toBe(404);
    expect(await cluster.statusOf(configPath("default", "whole-a"))).toBe(404);
    expect(await cluster.statusOf("/api/v1/namespaces/starling-system")).toBe(200);
  });
});
