/** The discovery documents of a small API server, in aggregated and in plain form. */

interface Served {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
}

const verbs = ["create", "delete", "get", "list", "patch", "update", "watch"];

const served: readonly Served[] = [
  { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps", namespaced: true },
  { group: "", version: "v1", kind: "Secret", plural: "secrets", namespaced: true },
  { group: "", version: "v1", kind: "Namespace", plural: "namespaces", namespaced: false },
  { group: "apps", version: "v1", kind: "Deployment", plural: "deployments", namespaced: true },
  { group: "rbac.authorization.k8s.io", version: "v1", kind: "ClusterRole", plural: "clusterroles", namespaced: false },
  {
    group: "apiextensions.k8s.io",
    version: "v1",
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions",
    namespaced: false,
  },
];

export function aggregatedDiscovery(path: "/api" | "/apis", stale: readonly string[] = []): unknown {
  const groups = groupNames(path);
  const items = groups.map((group) => ({
    metadata: group === "" ? {} : { name: group },
    versions: [
      {
        version: "v1",
        freshness: stale.includes(group) ? "Stale" : "Current",
        resources: stale.includes(group) ? [] : resourcesOf(group).map(aggregatedResource),
      },
    ],
  }));
  return { kind: "APIGroupDiscoveryList", apiVersion: "apidiscovery.k8s.io/v2", metadata: {}, items };
}

export function plainDiscovery(path: string): unknown {
  if (path === "/api") return { kind: "APIVersions", versions: ["v1"] };
  if (path === "/apis") {
    const groups = groupNames("/apis").map((name) => {
      const version = { groupVersion: `${name}/v1`, version: "v1" };
      return { name, versions: [version], preferredVersion: version };
    });
    return { kind: "APIGroupList", apiVersion: "v1", groups };
  }
  const group = path === "/api/v1" ? "" : (path.split("/")[2] ?? "");
  const resources = resourcesOf(group).flatMap(({ plural, kind, namespaced }) => [
    { name: plural, kind, namespaced, verbs },
    { name: `${plural}/status`, kind, namespaced, verbs: ["get"] },
  ]);
  return { kind: "APIResourceList", groupVersion: group === "" ? "v1" : `${group}/v1`, resources };
}

function groupNames(path: "/api" | "/apis"): readonly string[] {
  const names = [...new Set(served.map(({ group }) => group))];
  return path === "/api" ? [""] : [...names.filter((name) => name !== ""), "metrics.example.com"];
}

function resourcesOf(group: string): readonly Served[] {
  return served.filter((resource) => resource.group === group);
}

function aggregatedResource({ kind, plural, namespaced }: Served) {
  return {
    resource: plural,
    responseKind: { group: "", version: "", kind },
    scope: namespaced ? "Namespaced" : "Cluster",
    verbs,
    subresources: [{ subresource: "status", verbs: ["get"] }],
  };
}
