import { describe, expect, test } from "vitest";
import { guardDefinition, guardNamespace } from "#functions/apply/engine/deletion-guards.ts";
import { type ManifestObject, objectIdOf } from "#shared/domain/kube-object.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { clusterFixture, configMap, definition, manifest, namespace, widget } from "#test/support/cluster-fixture.ts";
import { forAllTests } from "#test/support/for-tests.ts";

describe.each(clusterTargets)("what a deletion would take along, on $name", ({ start }) => {
  const cluster = forAllTests(async () => clusterFixture(await start()));
  const guard = (name: string) => guardNamespace(cluster.client, objectIdOf(namespace(name)));

  /** Past Starling, as anybody may. */
  async function put(ns: string, plural: string, object: ManifestObject): Promise<void> {
    const group = object.apiVersion.includes("/") ? `/apis/${object.apiVersion}` : "/api/v1";
    await cluster.raw("POST", `${group}/namespaces/${ns}/${plural}`, { body: object });
  }

  const named = (ns: string, kind: string, name: string, rest: object = {}) =>
    manifest({ apiVersion: "v1", kind, metadata: { name, namespace: ns }, ...rest });

  async function begun(ns: string): Promise<void> {
    await cluster.raw("POST", "/api/v1/namespaces", { body: namespace(ns) });
  }

  test.each(["default", "kube-system", "kube-public", "kube-node-lease", "starling-system"])(
    "Namespace %s is kept, whatever is in it",
    async (name) => {
      expect(await guard(name)).toMatchObject({ kind: "keep", reason: "Protected" });
    },
  );

  test("a Namespace that holds what every one does, and what comes and goes by itself, may go", async () => {
    await begun("bare");
    await put("bare", "serviceaccounts", named("bare", "ServiceAccount", "default"));
    await put("bare", "configmaps", configMap("bare/kube-root-ca.crt"));
    await put("bare", "endpoints", named("bare", "Endpoints", "web"));
    const slice = named("bare", "EndpointSlice", "web-1", {
      apiVersion: "discovery.k8s.io/v1",
      addressType: "IPv4",
      endpoints: [],
    });
    await put("bare", "endpointslices", slice);
    const about = { kind: "Pod", namespace: "bare", name: "web-1" };
    await put(
      "bare",
      "events",
      named("bare", "Event", "e1", { involvedObject: about, reason: "Pulled", type: "Normal" }),
    );
    expect(await guard("bare")).toBeUndefined();
  });

  /** Each looks like what every namespace holds, and is not. */
  test.each<[string, string, (ns: string) => ManifestObject]>([
    ["another ServiceAccount", "serviceaccounts", (ns) => named(ns, "ServiceAccount", "robot")],
    ["a ConfigMap called default", "configmaps", (ns) => configMap(`${ns}/default`)],
    ["a Secret called like the ConfigMap", "secrets", (ns) => named(ns, "Secret", "kube-root-ca.crt")],
    [
      "a ServiceAccount called like the ConfigMap",
      "serviceaccounts",
      (ns) => named(ns, "ServiceAccount", "kube-root-ca.crt"),
    ],
  ])("a Namespace with %s waits", async (what, plural, make) => {
    const ns = what.toLowerCase().replaceAll(/\W+/g, "-");
    await begun(ns);
    const object = make(ns);
    await put(ns, plural, object);
    expect(await guard(ns)).toMatchObject({
      kind: "wait",
      reason: "NamespaceNotEmpty",
      message: expect.stringContaining(`still holds ${object.kind} ${ns}/${object.metadata.name};`),
    });
  });

  test("a Namespace with a custom resource waits", async () => {
    const group = "held.example.com";
    await cluster.raw("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", { body: definition(group) });
    const path = `/apis/${group}/v1/namespaces/custom/widgets`;
    await expect.poll(() => cluster.statusOf(path), { timeout: 10_000 }).toBe(200);
    await begun("custom");
    await cluster.raw("POST", path, { body: widget(group, "custom/w") });
    cluster.client.forgetKinds();
    expect(await guard("custom")).toMatchObject({
      kind: "wait",
      message: expect.stringContaining(`Widget.${group} custom/w;`),
    });
  });

  test.each([
    [3, "ConfigMap %/a0, ConfigMap %/a1, ConfigMap %/a2; it is deleted when they are gone:"],
    [4, "ConfigMap %/a0, ConfigMap %/a1, ConfigMap %/a2 and others; it is deleted when they are gone:"],
    [9, "ConfigMap %/a0, ConfigMap %/a1, ConfigMap %/a2 and others; it is deleted when they are gone:"],
  ])("of %i objects the first three are named", async (count, expected) => {
    const ns = `holds-${count}`;
    await begun(ns);
    for (let index = 0; index < count; index++) await put(ns, "configmaps", configMap(`${ns}/a${index}`));
    const wanted = `Namespace ${ns} still holds ${expected.replaceAll("%", ns)}`;
    expect((await guard(ns))?.message.slice(0, wanted.length)).toBe(wanted);
  });

  test("what is in another Namespace holds nobody", async () => {
    await begun("next-door");
    await begun("empty");
    await put("next-door", "configmaps", configMap("next-door/c"));
    expect(await guard("empty")).toBeUndefined();
  });

  test("a definition with objects waits, in whatever namespace they are; without any it may go", async () => {
    const group = "guarded.example.com";
    const defined = definition(group);
    const guardOf = () => guardDefinition(cluster.client, objectIdOf(defined));
    expect(await guardOf()).toBeUndefined();
    await cluster.raw("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", { body: defined });
    await begun("defined");
    const path = `/apis/${group}/v1/namespaces/defined/widgets`;
    await expect.poll(() => cluster.statusOf(path), { timeout: 10_000 }).toBe(200);
    cluster.client.forgetKinds();
    expect(await guardOf()).toBeUndefined();
    for (const name of ["a", "b", "c", "d"])
      await cluster.raw("POST", path, { body: widget(group, `defined/${name}`) });
    const names = ["a", "b", "c"].map((name) => `Widget.${group} defined/${name}`).join(", ");
    expect(await guardOf()).toEqual({
      kind: "wait",
      reason: "DefinitionInUse",
      message: `CustomResourceDefinition widgets.${group} still has ${names} and others; it is deleted when they are gone`,
    });
    for (const name of ["b", "c", "d"]) await cluster.raw("DELETE", `${path}/${name}`);
    expect(await guardOf()).toMatchObject({
      message: expect.stringContaining(`still has Widget.${group} defined/a; it`),
    });
  });
});
