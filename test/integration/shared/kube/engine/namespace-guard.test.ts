import { describe, expect, test } from "vitest";
import type { JsonObject } from "#shared/base/json.ts";
import { ensureParent } from "#shared/kube/engine/ensure-parent.ts";
import { pruneSet } from "#shared/kube/engine/prune-set.ts";
import { type ManifestObject, stringAt } from "#shared/kube/kube-object.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { claimFor, configMap, definition, manifest, namespace } from "#test/support/cluster-fixture.ts";
import { engineWorld, pruneRequest } from "#test/support/engine-world.ts";
import { forAllTests } from "#test/support/for-tests.ts";

/** Legend: collection, object without its namespace. */
type Found = readonly [string, JsonObject];

describe.each(clusterTargets)("a Namespace that left the set on $name", ({ start }) => {
  const cluster = forAllTests(async () => engineWorld(await start()));

  const config = (name: string): Found => ["api/v1/configmaps", { ...configMap(`x/${name}`) }];
  const account = (name: string): Found => ["api/v1/serviceaccounts", plain("v1", "ServiceAccount", { name })];
  const secret = (metadata: JsonObject): Found => ["api/v1/secrets", plain("v1", "Secret", metadata)];
  const pull = (token: string): Found => [
    "api/v1/secrets",
    { ...plain("v1", "Secret", { name: "pull" }), stringData: { token } },
  ];
  const binding = (name: string): Found => [
    "apis/rbac.authorization.k8s.io/v1/rolebindings",
    {
      ...plain("rbac.authorization.k8s.io/v1", "RoleBinding", { name }),
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "view" },
    },
  ];
  const claim = (name: string): Found => [
    "api/v1/persistentvolumeclaims",
    {
      ...plain("v1", "PersistentVolumeClaim", { name }),
      spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
    },
  ];

  function plain(apiVersion: string, kind: string, metadata: JsonObject): ManifestObject {
    return manifest({ apiVersion, kind, metadata });
  }

  async function put(ns: string, [collection, object]: Found): Promise<void> {
    const at = collection.lastIndexOf("/");
    const path = `/${collection.slice(0, at)}/namespaces/${ns}${collection.slice(at)}`;
    const metadata = { ...Object(object.metadata), namespace: ns };
    await cluster.raw("POST", path, { body: { ...object, metadata } });
  }

  /** Applies a Namespace alone, fills it with foreign objects, and prunes it. @returns its outcome. */
  async function pruned(ns: string, found: readonly Found[]) {
    const mine = claimFor(ns);
    await ensureParent(cluster.client, { claim: mine, groupKinds: [] });
    const inventory = await cluster.applied(ns, [namespace(ns)]);
    for (const one of found) await put(ns, one);
    const result = await pruneSet(cluster.client, pruneRequest({ claim: mine, inventory }, []));
    if (result.outcome === "refused") throw new Error(result.message);
    return result.objects[0];
  }

  /** Whether the Namespace is gone or being deleted; without controllers its deletion may never end. */
  async function isGoing(ns: string): Promise<boolean> {
    if ((await cluster.statusOf(`/api/v1/namespaces/${ns}`)) === 404) return true;
    const live = await cluster.raw("GET", `/api/v1/namespaces/${ns}`);
    return stringAt(live, "metadata", "deletionTimestamp") !== undefined;
  }

  test("a Namespace with only the objects of its controllers is deleted", async () => {
    await pruned("defaults", [
      ...["kube-root-ca.crt", "openshift-service-ca.crt", "istio-ca-root-cert", "istio-ca-crl"].map(config),
      account("default"),
      secret({ name: "default-token-abcde", annotations: { "kubernetes.io/service-account.name": "default" } }),
    ]);
    expect(await isGoing("defaults")).toBe(true);
  });

  test("a Namespace with copies of objects that all of the cluster's own have is deleted", async () => {
    const own = ["kube-node-lease", "kube-public", "kube-system", "default"];
    const copies = ["copy-1", "copy-2", "copy-3", "copy-4", "copy-5", "copy-6"].map(config);
    for (const ns of own) for (const copy of copies) await put(ns, copy);
    for (const ns of own) await put(ns, claim("in-all"));
    for (const ns of own) await put(ns, pull("shared"));
    for (const ns of own.slice(1)) await put(ns, config("in-most"));
    await pruned("copied", [...copies, pull("shared")]);
    expect(await isGoing("copied")).toBe(true);

    const stranger = await pruned("copied-too", [...copies, config("in-most")]);
    expect(stranger).toMatchObject({ outcome: "waiting" });
    expect(stranger?.message).toBe(
      "Namespace copied-too still contains ConfigMap copied-too/in-most; Starling deletes it when they are gone: delete them, or the Namespace by hand with kubectl delete namespace copied-too",
    );
    expect(await isGoing("copied-too")).toBe(false);

    // The data of these ConfigMaps differ.
    const changed: Found = ["api/v1/configmaps", { ...configMap("x/copy-1", { k: "my own" }) }];
    expect((await pruned("other-config", [changed]))?.message).toContain("ConfigMap other-config/copy-1;");
    expect((await pruned("other-secret", [pull("my own")]))?.message).toContain("Secret other-secret/pull;");
    const ofAnotherType: Found = ["api/v1/secrets", { ...pull("shared")[1], type: "example.com/pull" }];
    expect((await pruned("other-type", [ofAnotherType]))?.message).toContain("Secret other-type/pull;");
    expect(await isGoing("other-secret")).toBe(false);
    expect((await pruned("with-data", [claim("in-all")]))?.outcome).toBe("waiting");
    expect(await isGoing("with-data")).toBe(false);
  });

  test.each<[string, Found, string]>([
    ["a ConfigMap", config("theirs"), "ConfigMap"],
    ["one that sorts after the defaults", config("zz-theirs"), "ConfigMap"],
    ["a ServiceAccount", account("robot"), "ServiceAccount"],
    ["what is called like an account of OpenShift", account("builder"), "ServiceAccount"],
    ["what is called like a binding of OpenShift", binding("system:deployers"), "RoleBinding"],
    [
      "a token that was requested",
      secret({ name: "ci", annotations: { "kubernetes.io/service-account.name": "default" } }),
      "Secret",
    ],
    ["a Secret that is only called like one", secret({ name: "builder-dockercfg-x7k2p" }), "Secret"],
    ["a claim", claim("data"), "PersistentVolumeClaim"],
  ])("a foreign object keeps its Namespace: %s", async (what, stranger, kind) => {
    const ns = `holds-${what.replaceAll(/[^a-z]/gi, "").toLowerCase()}`;
    const defaultObjects = ["kube-root-ca.crt", "openshift-service-ca.crt", "istio-ca-root-cert", "istio-ca-crl"].map(
      config,
    );
    const held = await pruned(ns, [...defaultObjects, stranger]);
    expect(held?.outcome).toBe("waiting");
    expect(held?.message).toMatch(new RegExp(`still contains ${kind}\\S* ${ns}/`));
    expect(held?.message).not.toContain("ca.crt");
    expect(await isGoing(ns)).toBe(false);
  });

  test("a Namespace with OpenShift's default objects is deleted if OpenShift's kinds are served", async () => {
    const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    const group = "project.openshift.io";
    await cluster.raw("POST", definitions, { body: definition(group) });
    await expect.poll(() => cluster.statusOf(`/apis/${group}/v1/widgets`), { timeout: 10_000 }).toBe(200);
    const annotations = { "openshift.io/internal-registry-auth-token.service-account": "builder" };
    await pruned("on-openshift", [
      ...["default", "builder", "deployer"].map(account),
      ...["system:deployers", "system:image-builders", "system:image-pullers"].map(binding),
      secret({ name: "builder-dockercfg-x7k2p", annotations }),
    ]);
    expect(await isGoing("on-openshift")).toBe(true);
  });
});
