import { describe, expect, test } from "vitest";
import { guardDefinition, guardNamespace } from "#shared/kube/engine/deletion-guards.ts";
import { type ManifestObject, objectIdOf } from "#shared/kube/kube-object.ts";
import { describeObject } from "#shared/kube/object-id.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { clusterFixture, configMap, definition, manifest, namespace, widget } from "#test/support/cluster-fixture.ts";
import { forAllTests } from "#test/support/for-tests.ts";

const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

describe.each(clusterTargets)("objects that a deletion would remove as well, on $name", ({ start }) => {
  const cluster = forAllTests(async () => clusterFixture(await start()));
  const guard = (name: string) => guardNamespace(cluster.client, objectIdOf(namespace(name)));

  /** Writes without Starling, as any user may. */
  async function put(ns: string, plural: string, object: ManifestObject): Promise<void> {
    const group = object.apiVersion.includes("/") ? `/apis/${object.apiVersion}` : "/api/v1";
    await cluster.raw("POST", `${group}/namespaces/${ns}/${plural}`, { body: object });
  }

  const named = (ns: string, kind: string, name: string, rest: object = {}) =>
    manifest({ apiVersion: "v1", kind, metadata: { name, namespace: ns }, ...rest });

  const sliceIn = (ns: string) =>
    named(ns, "EndpointSlice", "web-1", { apiVersion: "discovery.k8s.io/v1", addressType: "IPv4", endpoints: [] });

  async function begun(ns: string): Promise<void> {
    await cluster.raw("POST", "/api/v1/namespaces", { body: namespace(ns) });
  }

  test.each(["default", "kube-system", "kube-public", "kube-node-lease", "starling-system"])(
    "Namespace %s is kept, whatever is in it",
    async (name) => {
      expect(await guard(name)).toMatchObject({ kind: "keep", reason: "Protected" });
    },
  );

  test("a Namespace that holds only default objects and short-lived ones may be deleted", async () => {
    await begun("bare");
    await put("bare", "serviceaccounts", named("bare", "ServiceAccount", "default"));
    await put("bare", "configmaps", configMap("bare/kube-root-ca.crt"));
    const subsets = [{ addresses: [{ ip: "10.1.2.3" }], ports: [{ port: 80 }] }];
    await put("bare", "endpoints?fieldManager=kube-controller-manager", named("bare", "Endpoints", "web", { subsets }));
    const service = { apiVersion: "v1", kind: "Service", name: "web", uid: "u1", controller: true };
    const { metadata, ...slice } = sliceIn("bare");
    await put("bare", "endpointslices", { ...slice, metadata: { ...metadata, ownerReferences: [service] } });
    const about = { kind: "Pod", namespace: "bare", name: "web-1" };
    await put(
      "bare",
      "events",
      named("bare", "Event", "e1", { involvedObject: about, reason: "Pulled", type: "Normal" }),
    );
    expect(await guard("bare")).toBeUndefined();
  });

  /** Each object only resembles a default object of a namespace. */
  test.each<[string, string, (ns: string) => ManifestObject]>([
    ["another ServiceAccount", "serviceaccounts", (ns) => named(ns, "ServiceAccount", "robot")],
    ["a ConfigMap called default", "configmaps", (ns) => configMap(`${ns}/default`)],
    ["a Secret called like the ConfigMap", "secrets", (ns) => named(ns, "Secret", "kube-root-ca.crt")],
    [
      "a ServiceAccount that has the name of the default ConfigMap",
      "serviceaccounts",
      (ns) => named(ns, "ServiceAccount", "kube-root-ca.crt"),
    ],
    [
      "a ServiceAccount that has the name of one of OpenShift",
      "serviceaccounts",
      (ns) => named(ns, "ServiceAccount", "deployer"),
    ],
    ["Endpoints that somebody wrote", "endpoints", (ns) => named(ns, "Endpoints", "outside")],
    ["an EndpointSlice that somebody wrote", "endpointslices", sliceIn],
  ])("a Namespace with %s waits", async (what, plural, make) => {
    const ns = what.toLowerCase().replaceAll(/\W+/g, "-");
    await begun(ns);
    const object = make(ns);
    await put(ns, plural, object);
    expect(await guard(ns)).toMatchObject({
      kind: "wait",
      reason: "NamespaceNotEmpty",
      message: expect.stringContaining(`still contains ${describeObject(objectIdOf(object))};`),
    });
  });

  test.each([["Widget"], ["Event"], ["Endpoints"]])(
    "a Namespace with a custom resource of kind %s waits, even if the kind is newer than the last discovery",
    async (kind) => {
      const ns = `custom-${kind.toLowerCase()}`;
      const group = `${kind.toLowerCase()}.example.com`;
      await cluster.client.listableKinds();
      const { spec, ...defined } = definition(group);
      const names = { kind, listKind: `${kind}List`, plural: "widgets", singular: "widget" };
      await cluster.raw("POST", definitions, { body: { ...defined, spec: { ...Object(spec), names } } });
      const path = `/apis/${group}/v1/namespaces/${ns}/widgets`;
      await expect.poll(() => cluster.statusOf(path), { timeout: 10_000 }).toBe(200);
      await begun(ns);
      await cluster.raw("POST", path, { body: { ...widget(group, `${ns}/w`), kind } });
      expect(await guard(ns)).toMatchObject({
        kind: "wait",
        message: expect.stringContaining(`still contains ${kind}.${group} ${ns}/w;`),
      });
    },
  );

  test.each([
    [3, "ConfigMap %/a0, ConfigMap %/a1, ConfigMap %/a2; Starling deletes it when they are gone:"],
    [4, "ConfigMap %/a0, ConfigMap %/a1, ConfigMap %/a2 and others; Starling deletes it when they are gone:"],
    [9, "ConfigMap %/a0, ConfigMap %/a1, ConfigMap %/a2 and others; Starling deletes it when they are gone:"],
  ])("the first three of %i objects are named", async (count, expected) => {
    const ns = `holds-${count}`;
    await begun(ns);
    for (let index = 0; index < count; index++) await put(ns, "configmaps", configMap(`${ns}/a${index}`));
    const desired = `Namespace ${ns} still contains ${expected.replaceAll("%", ns)}`;
    expect((await guard(ns))?.message.slice(0, desired.length)).toBe(desired);
  });

  test("an object in another Namespace delays no deletion", async () => {
    await begun("neighbour");
    await begun("empty");
    await put("neighbour", "configmaps", configMap("neighbour/c"));
    expect(await guard("empty")).toBeUndefined();
  });

  test("a definition with objects in any namespace waits; without objects it may be deleted", async () => {
    const group = "guarded.example.com";
    const defined = definition(group);
    const guardOf = () => guardDefinition(cluster.client, objectIdOf(defined));
    expect(await guardOf()).toBeUndefined();
    await cluster.raw("POST", definitions, { body: defined });
    await begun("defined");
    const path = `/apis/${group}/v1/namespaces/defined/widgets`;
    await expect.poll(() => cluster.statusOf(path), { timeout: 10_000 }).toBe(200);
    expect(await guardOf()).toBeUndefined();
    for (const name of ["a", "b", "c", "d"])
      await cluster.raw("POST", path, { body: widget(group, `defined/${name}`) });
    const names = ["a", "b", "c"].map((name) => `Widget.${group} defined/${name}`).join(", ");
    expect(await guardOf()).toEqual({
      kind: "wait",
      reason: "DefinitionInUse",
      message: `CustomResourceDefinition widgets.${group} still has the objects ${names} and others; Starling deletes it when they are gone`,
    });
    for (const name of ["b", "c", "d"]) await cluster.raw("DELETE", `${path}/${name}`);
    expect(await guardOf()).toMatchObject({
      message: expect.stringContaining(`still has the objects Widget.${group} defined/a; Starling deletes it`),
    });
  });

  test("a definition that is not served waits, because its stored objects cannot be seen", async () => {
    const group = "unserved.example.com";
    const defined = definition(group);
    const path = `/apis/${group}/v1/namespaces/default/widgets`;
    await cluster.raw("POST", definitions, { body: defined });
    await expect.poll(() => cluster.statusOf(path), { timeout: 10_000 }).toBe(200);
    await cluster.raw("POST", path, { body: widget(group, "default/precious") });
    const unserved = [{ op: "replace", path: "/spec/versions/0/served", value: false }];
    await cluster.raw("PATCH", `${definitions}/widgets.${group}`, { body: unserved, as: "json-patch" });
    await expect.poll(() => cluster.statusOf(path), { timeout: 10_000 }).toBe(404);
    await expect
      .poll(() => guardDefinition(cluster.client, objectIdOf(defined)), { timeout: 10_000 })
      .toEqual({
        kind: "wait",
        reason: "DefinitionNotServed",
        message: `CustomResourceDefinition widgets.${group} is not served, so that Starling cannot see whether it still has objects, which the deletion would remove: serve one of its versions again, or delete it by hand with kubectl delete customresourcedefinition widgets.${group}`,
      });
  });
});
