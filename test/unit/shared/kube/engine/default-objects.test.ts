/** The default objects of a Namespace, which go with it; every other object belongs to a user. */
import { describe, expect, test } from "vitest";
import type { ClusterClient, KindInfo, ObjectKey } from "#shared/kube/cluster-client.ts";
import { copiedEverywhere, defaultObjectsOf, isFleeting } from "#shared/kube/engine/default-objects.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import type { KubeObject } from "#shared/kube/kube-object.ts";

const kindOf = (key: string, verbs: readonly string[] = ["create"]): KindInfo => {
  const [group = "", kind = ""] = key.split("/");
  return { group, version: "v1", kind, plural: "", namespaced: true, verbs, hasStatus: false };
};
const named = (name: string, more: object = {}): KubeObject =>
  ({ apiVersion: "v1", kind: "X", metadata: { name, ...more } }) as never;
const ofAccount = (account: string, annotation = "kubernetes.io/service-account.name") => ({
  annotations: { [annotation]: account },
});
const internal = "openshift.io/internal-registry-auth-token.service-account";
const writtenBy = (...managers: readonly string[]) => ({ managedFields: managers.map((manager) => ({ manager })) });
const controlledBy = (controller: boolean) => ({ ownerReferences: [{ name: "web", controller }] });

/** Group and kind, the object, whether it is a default object in any cluster, and whether it is one on OpenShift. */
const found: readonly (readonly [string, string, KubeObject, boolean, boolean])[] = [
  ["the default ServiceAccount", "/ServiceAccount", named("default"), true, true],
  ["OpenShift's builder", "/ServiceAccount", named("builder"), false, true],
  ["OpenShift's deployer", "/ServiceAccount", named("deployer"), false, true],
  ["a user's ServiceAccount", "/ServiceAccount", named("web"), false, false],
  ["the API server's certificate", "/ConfigMap", named("kube-root-ca.crt"), true, true],
  ["the certificate of OpenShift's services", "/ConfigMap", named("openshift-service-ca.crt"), true, true],
  ["Istio's certificate", "/ConfigMap", named("istio-ca-root-cert"), true, true],
  ["Istio's revocation list", "/ConfigMap", named("istio-ca-crl"), true, true],
  ["the certificate's name on another kind", "/Secret", named("kube-root-ca.crt"), false, false],
  ["the certificate's name in another group", "example.com/ConfigMap", named("kube-root-ca.crt"), false, false],
  ...["system:deployers", "system:image-builders", "system:image-pullers"].map(
    (name) => [`the binding ${name}`, "rbac.authorization.k8s.io/RoleBinding", named(name), false, true] as const,
  ),
  [
    "the token of the default ServiceAccount",
    "/Secret",
    named("default-token-x7k2p", ofAccount("default")),
    true,
    true,
  ],
  [
    "the pull secret of the default ServiceAccount",
    "/Secret",
    named("default-dockercfg-x7k2p", ofAccount("default", internal)),
    true,
    true,
  ],
  [
    "the pull secret of the builder",
    "/Secret",
    named("builder-dockercfg-x7k2p", ofAccount("builder", internal)),
    false,
    true,
  ],
  ["a Secret with only the name of a token", "/Secret", named("default-token-x7k2p"), false, false],
  ["a token with the name of another account", "/Secret", named("default-token-x7k2p", ofAccount("web")), false, false],
  ["the token of a user's account", "/Secret", named("web-token-x7k2p", ofAccount("web")), false, false],
  ["a token with a longer name", "/Secret", named("default-token-x7k2p-mine", ofAccount("default")), false, false],
  ["a token with a shorter name", "/Secret", named("default-token-x7k", ofAccount("default")), false, false],
  ["a token with a prefixed name", "/Secret", named("my-default-token-x7k2p", ofAccount("default")), false, false],
  ["the addresses of a Service", "/Endpoints", named("web", writtenBy("them", "kube-controller-manager")), true, true],
  ["addresses that a user wrote", "/Endpoints", named("web", writtenBy("kubectl")), false, false],
  ["slices of a Service", "discovery.k8s.io/EndpointSlice", named("web-1", controlledBy(true)), true, true],
  ["slices that a user wrote", "discovery.k8s.io/EndpointSlice", named("web-1", controlledBy(false)), false, false],
  [
    "another object by the same controller",
    "/ConfigMap",
    named("web", writtenBy("kube-controller-manager")),
    false,
    false,
  ],
];

test.each(found)("a Namespace may have by default: %s", (_what, key, object, anywhere, onOpenShift) => {
  expect(defaultObjectsOf([kindOf("/ConfigMap")])(kindOf(key), object)).toBe(anywhere);
  const openShift = [kindOf("/ConfigMap"), kindOf("project.openshift.io/Project")];
  expect(defaultObjectsOf(openShift)(kindOf(key), object)).toBe(onOpenShift);
});

test.each([
  ["/Event", ["create"], true],
  ["events.k8s.io/Event", ["create"], true],
  ["example.com/Event", ["create"], false],
  ["/Pod", ["create", "list"], false],
  ["metrics.k8s.io/PodMetrics", ["create"], true],
  ["example.com/Summary", ["list"], true],
])("objects of %s with the verbs %j come and go: %s", (key, verbs, expected) => {
  expect(isFleeting(kindOf(key, verbs))).toBe(expected);
});

describe("an object in all of the cluster's own Namespaces", () => {
  const own = ["kube-node-lease", "kube-public", "kube-system", "default"];
  const config = (name: string, data: object = {}, more: object = {}) => ({ ...named(name), data, ...more }) as never;

  /** A cluster with the given objects by namespace; reading one namespace may fail. */
  function clusterWith(objects: Readonly<Record<string, readonly KubeObject[]>>, failing?: string): ClusterClient {
    const read = (namespace = "") => {
      if (namespace !== failing) return objects[namespace] ?? [];
      const facts = { status: 403, message: "no", causes: [] };
      throw new KubeError({ method: "GET", path: "/", secret: false }, facts);
    };
    return {
      list: async (_kind: KindInfo, { namespace }: { namespace?: string }) => read(namespace),
      get: async (_kind: KindInfo, { namespace, name }: ObjectKey) =>
        read(namespace).find((object) => (object.metadata as { name?: string } | undefined)?.name === name),
    } as never;
  }
  const everywhere = (...objects: readonly KubeObject[]) => Object.fromEntries(own.map((ns) => [ns, objects]));

  test("an object with the same content in all of the cluster's own Namespaces is a copy", async () => {
    const client = clusterWith(everywhere(config("ca", { pem: "x" })));
    const copied = await copiedEverywhere(client, kindOf("/ConfigMap"));
    expect(copied.extent).toEqual({});
    expect([copied.isName("ca"), copied.isName("other")]).toEqual([true, false]);
    expect(copied.isCopy(config("ca", { pem: "x" }))).toBe(true);
    for (const other of [
      config("ca", { pem: "y" }),
      config("ca", { pem: "x" }, { binaryData: { more: "eA==" } }),
      config("ca", { pem: "x" }, { type: "Opaque" }),
      config("other", { pem: "x" }),
    ]) {
      expect(copied.isCopy(other)).toBe(false);
    }
  });

  test.each(own)("an object that is missing in %s is not a copy", async (without) => {
    const client = clusterWith({ ...everywhere(config("ca")), [without]: [] });
    const copied = await copiedEverywhere(client, kindOf("/ConfigMap"));
    expect(copied.isName("ca")).toBe(false);
    expect(copied.isCopy(config("ca"))).toBe(false);
  });

  test.each(own)("an object is not known as a copy if %s cannot be read", async (failing) => {
    const copied = await copiedEverywhere(clusterWith(everywhere(config("ca")), failing), kindOf("/ConfigMap"));
    expect(copied.isName("ca")).toBe(false);
  });

  test.each([
    ["/ConfigMap", true, false],
    ["/Secret", true, false],
    ["/LimitRange", true, true],
    ["/ResourceQuota", true, true],
    ["/ServiceAccount", true, true],
    ["networking.k8s.io/NetworkPolicy", true, true],
    ["rbac.authorization.k8s.io/Role", true, true],
    ["rbac.authorization.k8s.io/RoleBinding", true, true],
    ["/PersistentVolumeClaim", false, true],
    ["example.com/ConfigMap", false, true],
  ])("copies of the kind %s are recognised: %s, by their names alone: %s", async (key, counts, byName) => {
    const copied = await copiedEverywhere(clusterWith(everywhere(config("ca"))), kindOf(key));
    expect(copied.isName("ca")).toBe(counts);
    expect(copied.extent).toEqual(byName ? { metadataOnly: true } : {});
  });
});
