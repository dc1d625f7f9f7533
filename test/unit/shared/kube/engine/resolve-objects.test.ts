import { expect, test } from "vitest";
import type { ClusterClient, KindLookup, KindQuery } from "#shared/kube/cluster-client.ts";
import { resolveObjects } from "#shared/kube/engine/resolve-objects.ts";
import { configMap, definition, manifest, namespace, widget } from "#test/support/cluster-fixture.ts";

/** What discovery says, and what it was asked. */
function discovery(found: Readonly<Record<string, { readonly namespaced: boolean }>>) {
  const asked: string[] = [];
  const lookup = async ({ group, kind }: KindQuery): Promise<KindLookup> => {
    asked.push(`${group}/${kind}`);
    const known = found[`${group}/${kind}`];
    if (known === undefined) return { outcome: "absent", served: [] };
    const info = { group, kind, version: "v1", plural: "", verbs: [], hasStatus: false, ...known };
    return { outcome: "found", info };
  };
  return { asked, client: { lookup } as Pick<ClusterClient, "lookup"> as ClusterClient };
}

const core = { "/ConfigMap": { namespaced: true }, "/Namespace": { namespaced: false } };

test("each kind is looked up once, whatever there is of it, and none that the set defines itself", async () => {
  const { asked, client } = discovery(core);
  const group = "example.com";
  const objects = [
    namespace("shop"),
    definition(group),
    ...["a", "b", "c"].map((name) => configMap(`shop/${name}`)),
    ...["a", "b"].map((name) => widget(group, `shop/${name}`)),
    ...["a", "b"].map((name) => widget("unknown.example.com", `shop/${name}`)),
  ];
  const resolved = await resolveObjects(client, objects, { setId: "set" });
  expect(resolved).toHaveLength(objects.length);
  expect([...asked].sort()).toEqual([
    "/ConfigMap",
    "/Namespace",
    "apiextensions.k8s.io/CustomResourceDefinition",
    "unknown.example.com/Widget",
  ]);
});

test.each([
  ["goes where the Sync says", { kind: "ConfigMap", metadata: { name: "c" } }, "shop", "shop", undefined],
  ["goes nowhere unasked", { kind: "ConfigMap", metadata: { name: "c" } }, undefined, "", "NoNamespace"],
  ["stays where it says", { kind: "ConfigMap", metadata: { name: "c", namespace: "own" } }, "shop", "own", undefined],
  ["of the cluster has none", { kind: "Namespace", metadata: { name: "c", namespace: "own" } }, "shop", "", undefined],
  ["of an unknown kind is left as it is", { kind: "Odd", metadata: { name: "c" } }, "shop", "", undefined],
])("an object %s", async (_what, object, defaultNamespace, expected, reason) => {
  const { client } = discovery(core);
  const given = manifest({ apiVersion: "v1", ...object });
  const [one] = await resolveObjects(client, [given], { setId: "set", defaultNamespace });
  expect(one?.id.namespace).toBe(expected);
  expect(one?.invalid?.reason).toBe(reason);
});

test("what is the same object once its scope is known is refused the second time", async () => {
  const { client } = discovery(core);
  const twice = [configMap("shop/c"), manifest({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c" } })];
  const resolved = await resolveObjects(client, twice, { setId: "set", defaultNamespace: "shop" });
  expect(resolved.map(({ invalid }) => invalid?.reason)).toEqual([undefined, "DuplicateObject"]);
});
