import { beforeAll, describe, expect, test } from "vitest";
import { runConcurrently } from "#shared/base/run-concurrently.ts";
import type { ClusterClient, KindInfo } from "#shared/kube/cluster-client.ts";
import { objectIdOf, stringAt } from "#shared/kube/kube-object.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { clusterFixture, configMap, manifest, namespace } from "#test/support/cluster-fixture.ts";
import { forAllTests } from "#test/support/for-tests.ts";

/** The behaviour of every ClusterClient, on every API server that is installed. */
describe.each(clusterTargets)("a ClusterClient on $name", ({ start }) => {
  const cluster = forAllTests(async () => clusterFixture(await start()));
  let client: ClusterClient;
  let configMaps: KindInfo;

  beforeAll(async () => {
    client = cluster.client;
    configMaps = await kindOf("", "ConfigMap");
    await client.apply(await kindOf("", "Namespace"), namespace("n"));
  });

  async function kindOf(group: string, kind: string): Promise<KindInfo> {
    const found = await client.lookup({ group, kind });
    if (found.outcome !== "found") throw new Error(`${kind} is ${found.outcome}`);
    return found.info;
  }

  test("the client finds the kinds that a server has", async () => {
    expect(await kindOf("apps", "Deployment")).toMatchObject({
      plural: "deployments",
      namespaced: true,
      hasStatus: true,
    });
    expect(await kindOf("rbac.authorization.k8s.io", "ClusterRole")).toMatchObject({ namespaced: false });
    expect(await client.lookup({ group: "apps", kind: "Nope" })).toEqual({ outcome: "absent", served: [] });
    const listable = (await client.listableKinds()).map(({ kind }) => kind);
    expect(listable).toContain("ConfigMap");
    expect(listable).not.toContain("Binding");
  });

  test("an apply creates an object, leaves it unchanged when repeated, and updates it when it differs", async () => {
    const object = configMap("n/a");
    const first = await client.apply(configMaps, object);
    expect(first).toMatchObject({ created: true, object: { apiVersion: "v1", kind: "ConfigMap", data: { k: "1" } } });
    const second = await client.apply(configMaps, object);
    expect(second.created).toBe(false);
    expect(stringAt(second.object, "metadata", "resourceVersion")).toBe(
      stringAt(first.object, "metadata", "resourceVersion"),
    );
    expect((await client.apply(configMaps, configMap("n/a", { k: "2" }))).object.data).toEqual({ k: "2" });
  });

  test("an apply with a resourceVersion is a conflict if the object has changed since", async () => {
    const { object } = await client.apply(configMaps, configMap("n/version"));
    const over = (resourceVersion: string, k: string) => {
      const { metadata, ...rest } = configMap("n/version", { k });
      return client.apply(configMaps, manifest({ ...rest, metadata: { ...metadata, resourceVersion } }));
    };
    const first = stringAt(object, "metadata", "resourceVersion") ?? "";
    const second = stringAt((await over(first, "2")).object, "metadata", "resourceVersion") ?? "";
    // Even the same content is a conflict, because another writer may own the object by now.
    for (const k of ["2", "3"]) await expect(over(first, k)).rejects.toMatchObject({ verdict: { class: "conflict" } });
    expect((await over(second, "3")).object.data).toEqual({ k: "3" });
  });

  test("a dry run stores nothing", async () => {
    await client.apply(configMaps, configMap("n/dry"), { dryRun: true });
    expect(await client.get(configMaps, { namespace: "n", name: "dry" })).toBeUndefined();
  });

  test("the client gets an object, its metadata alone, or undefined if it does not exist", async () => {
    await client.apply(configMaps, configMap("n/get"));
    const key = { namespace: "n", name: "get" };
    expect(await client.get(configMaps, key)).toMatchObject({ kind: "ConfigMap", data: { k: "1" } });
    const metadata = await client.get(configMaps, key, { metadataOnly: true });
    expect(metadata).toMatchObject({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "get" } });
    expect(metadata).not.toHaveProperty("data");
    expect(await client.get(configMaps, { namespace: "nowhere", name: "get" })).toBeUndefined();
  });

  test("a manifest with an unknown field or a wrong type is invalid, whatever status the server answers", async () => {
    for (const object of [manifest({ ...configMap("n/bad"), nope: 1 }), configMap("n/bad", { k: 1 })]) {
      await expect(client.apply(configMaps, object)).rejects.toMatchObject({
        verdict: { class: "invalid", retryable: false },
      });
    }
  });

  test("an apply to a missing namespace fails with a class of its own", async () => {
    await expect(client.apply(configMaps, configMap("nowhere/a"))).rejects.toMatchObject({
      verdict: { class: "namespace", retryable: true },
    });
  });

  test("a second create is a conflict, and so is a replace with an old resourceVersion", async () => {
    const { object } = await client.create(configMaps, configMap("n/put"));
    await expect(client.create(configMaps, configMap("n/put"))).rejects.toMatchObject({
      verdict: { class: "conflict" },
    });
    const resourceVersion = stringAt(object, "metadata", "resourceVersion");
    const next = manifest({
      ...configMap("n/put", { k: "2" }),
      metadata: { name: "put", namespace: "n", resourceVersion },
    });
    expect((await client.replace(configMaps, next)).object.data).toEqual({ k: "2" });
    await expect(client.replace(configMaps, next)).rejects.toMatchObject({ verdict: { class: "conflict" } });
  });

  test("a JSON patch changes nothing if one of its tests fails", async () => {
    await client.apply(configMaps, configMap("n/patch"));
    const key = { namespace: "n", name: "patch" };
    const change = { op: "replace", path: "/data/k", value: "2" } as const;
    const test = { op: "test", path: "/metadata/resourceVersion", value: "0" } as const;
    await expect(client.patch(configMaps, key, [test, change])).rejects.toMatchObject({
      verdict: { retryable: false },
    });
    expect(await client.get(configMaps, key)).toMatchObject({ data: { k: "1" } });
    expect((await client.patch(configMaps, key, [change])).object.data).toEqual({ k: "2" });
  });

  test("a delete removes only the object with the given uid", async () => {
    const { object } = await client.apply(configMaps, configMap("n/del"));
    const key = { namespace: "n", name: "del" };
    const wrong = { uid: "00000000-0000-0000-0000-000000000000" };
    await expect(client.delete(configMaps, key, wrong)).rejects.toMatchObject({ verdict: { class: "replaced" } });
    const uid = stringAt(object, "metadata", "uid") ?? "";
    expect(await client.delete(configMaps, key, { uid })).toBe("gone");
    await expect(client.delete(configMaps, key, { uid })).rejects.toMatchObject({ verdict: { class: "notFound" } });
  });

  test("a delete of an object with a finalizer is only accepted, and ends when the finalizer is removed", async () => {
    const held = configMap("n/held");
    const { object } = await client.apply(configMaps, {
      ...held,
      metadata: { ...held.metadata, finalizers: ["example.com/f"] },
    });
    const key = { namespace: "n", name: "held" };
    const uid = stringAt(object, "metadata", "uid") ?? "";
    expect(await client.delete(configMaps, key, { uid })).toBe("asked");
    const finalizers = { op: "remove", path: "/metadata/finalizers" } as const;
    await client.patch(configMaps, key, [finalizers]);
    expect(await client.get(configMaps, key)).toBeUndefined();
  });

  test("a list reads all pages, selects by label, and returns objects or only their metadata", async () => {
    await client.apply(await kindOf("", "Namespace"), namespace("paged"));
    const names = Array.from({ length: 520 }, (_each, index) => `c${index}`);
    await runConcurrently(names, 12, async (name) => {
      const metadata = {
        name,
        namespace: "paged",
        labels: { parity: Number(name.slice(1)) % 2 === 0 ? "even" : "odd" },
      };
      await client.create(configMaps, manifest({ ...configMap("paged/x"), metadata }));
    });
    const query = { namespace: "paged", labelSelector: "parity" };
    const all = await client.list(configMaps, query);
    expect(new Set(all.map((item) => objectIdOf(item).name))).toEqual(new Set(names));
    expect(all[0]).toMatchObject({ apiVersion: "v1", kind: "ConfigMap", data: { k: "1" } });
    const even = await client.list(configMaps, { ...query, labelSelector: "parity=even", metadataOnly: true });
    expect(even).toHaveLength(260);
    expect(even[0]).not.toHaveProperty("data");
    expect(await client.list(configMaps, { ...query, maxItems: 3 })).toHaveLength(3);
  });
});
