import { createHash } from "node:crypto";
import { aggregatedApis, isUnavailable } from "#apiserver/aggregated-apis.ts";
import type { Cluster } from "#apiserver/cluster.ts";
import type { JsonObject } from "#apiserver/json.ts";
import { compareVersions } from "#apiserver/kinds/custom-kind.ts";
import { apiVersionOf, type Kind, type Subresource } from "#apiserver/kinds/kind.ts";

/** The served groups in the cluster's order, each with its versions, the preferred one first. */
function groupsOf(cluster: Cluster): ReadonlyMap<string, readonly string[]> {
  const groups = new Map<string, string[]>();
  for (const { group, version } of cluster.kinds()) {
    const versions = groups.get(group) ?? [];
    groups.set(group, versions);
    if (!versions.includes(version)) versions.push(version);
  }
  for (const { group, version } of aggregatedApis(cluster)) {
    groups.set(group, [...new Set([...(groups.get(group) ?? []), version])]);
  }
  for (const versions of groups.values()) versions.sort(compareVersions);
  return groups;
}

/** Whether an aggregated API exists for a group and version. This server knows none of its kinds. */
function isAnnounced(cluster: Cluster, group: string, version: string): boolean {
  return aggregatedApis(cluster).some((api) => api.group === group && api.version === version);
}

function kindsIn(cluster: Cluster, group: string, version: string): Kind[] {
  return cluster
    .kinds()
    .filter((kind) => kind.group === group && kind.version === version)
    .sort((a, b) => (a.plural < b.plural ? -1 : 1));
}

function groupDocument(group: string, versions: readonly string[]): JsonObject {
  const entries = versions.map((version) => ({ groupVersion: `${group}/${version}`, version }));
  return { name: group, versions: entries, preferredVersion: entries[0] ?? null };
}

/** GET /api. */
export function coreVersions(host: string): JsonObject {
  const serverAddressByClientCIDRs = [{ clientCIDR: "0.0.0.0/0", serverAddress: host }];
  return { kind: "APIVersions", versions: ["v1"], serverAddressByClientCIDRs };
}

/** GET /apis. */
export function groupList(cluster: Cluster): JsonObject {
  const groups = [...groupsOf(cluster)].filter(([group]) => group !== "");
  return {
    kind: "APIGroupList",
    apiVersion: "v1",
    groups: groups.map(([group, versions]) => groupDocument(group, versions)),
  };
}

/** GET /apis/GROUP; undefined where the group does not exist. */
export function groupOf(cluster: Cluster, group: string): JsonObject | undefined {
  const versions = group === "" ? undefined : groupsOf(cluster).get(group);
  return versions && { kind: "APIGroup", apiVersion: "v1", ...groupDocument(group, versions) };
}

function names(kind: Kind): JsonObject {
  return {
    ...(kind.shortNames.length === 0 ? {} : { shortNames: kind.shortNames }),
    ...(kind.categories.length === 0 ? {} : { categories: kind.categories }),
  };
}

function storageVersionHash(kind: Kind): string {
  return createHash("sha256")
    .update(`${kind.group}/${kind.version}/${kind.kind}`)
    .digest()
    .subarray(0, 8)
    .toString("base64");
}

function resourceEntries(kind: Kind): JsonObject[] {
  const { plural, singular, namespaced, verbs } = kind;
  const own = { name: plural, singularName: singular, namespaced, kind: kind.kind, verbs, ...names(kind) };
  return [
    kind.verbs.includes("get") ? { ...own, storageVersionHash: storageVersionHash(kind) } : own,
    ...kind.subresources.map((each) => subresourceEntry(kind, each)),
  ];
}

function subresourceEntry(parent: Kind, { name, kind, verbs, group, version }: Subresource): JsonObject {
  return {
    name: `${parent.plural}/${name}`,
    singularName: "",
    namespaced: parent.namespaced,
    ...(group === undefined ? {} : { group, version }),
    kind,
    verbs,
  };
}

/** GET /api/v1 and /apis/GROUP/VERSION; undefined where the version does not exist. */
export function resourceList(cluster: Cluster, group: string, version: string): JsonObject | undefined {
  const kinds = kindsIn(cluster, group, version);
  if (kinds.length === 0 && !isAnnounced(cluster, group, version)) return undefined;
  const groupVersion = group === "" ? version : `${group}/${version}`;
  const resources = kinds.flatMap(resourceEntries);
  return { kind: "APIResourceList", ...(group === "" ? {} : { apiVersion: "v1" }), groupVersion, resources };
}

function aggregatedResource(kind: Kind): JsonObject {
  const custom = kind.custom === undefined ? { group: "", version: "" } : { group: kind.group, version: kind.version };
  return {
    resource: kind.plural,
    responseKind: { ...custom, kind: kind.kind },
    scope: kind.namespaced ? "Namespaced" : "Cluster",
    singularResource: kind.singular,
    verbs: kind.verbs,
    ...names(kind),
    ...(kind.subresources.length === 0
      ? {}
      : {
          subresources: kind.subresources.map((each) => ({
            subresource: each.name,
            responseKind: {
              group: each.group ?? custom.group,
              version: each.version ?? custom.version,
              kind: each.kind,
            },
            verbs: each.verbs,
          })),
        }),
  };
}

/**
 * Aggregated discovery (KEP-3352) of the core group or of all named groups. An API whose server is down is marked as
 * stale.
 */
export function aggregatedDiscovery(cluster: Cluster, which: "core" | "named"): JsonObject {
  const groups = [...groupsOf(cluster)].filter(([group]) => (group === "") === (which === "core"));
  const items = groups.map(([group, versions]) => ({
    metadata: group === "" ? {} : { name: group },
    versions: versions.map((version) => ({
      version,
      resources: kindsIn(cluster, group, version).map(aggregatedResource),
      freshness: isUnavailable(cluster, group, version) ? "Stale" : "Current",
    })),
  }));
  return { kind: "APIGroupDiscoveryList", apiVersion: "apidiscovery.k8s.io/v2", metadata: {}, items };
}

/** GET /version. */
export function versionDocument(gitVersion: string): JsonObject {
  const [major = "1", minor = "0"] = gitVersion.replace(/^v/, "").split(".");
  return {
    major,
    minor,
    emulationMajor: major,
    emulationMinor: minor,
    minCompatibilityMajor: major,
    minCompatibilityMinor: String(Number(minor) - 1),
    gitVersion,
    gitCommit: "0",
    gitTreeState: "clean",
    buildDate: "2026-01-01T00:00:00Z",
    goVersion: "go1.27.3",
    compiler: "gc",
    platform: "linux/amd64",
  };
}

function openApiPath(group: string, version: string): string {
  return group === "" ? `api/${version}` : `apis/${group}/${version}`;
}

/** GET /openapi/v3: the paths of the documents of all group versions. */
export function openApiIndex(cluster: Cluster): JsonObject {
  const paths: Record<string, JsonObject> = {};
  for (const [group, versions] of groupsOf(cluster)) {
    for (const version of versions) {
      const path = openApiPath(group, version);
      const content = kindsIn(cluster, group, version).map((kind) => kind.kind);
      if (content.length === 0) continue;
      const hash = createHash("sha256").update(`${path}:${content.join()}`).digest("hex").toUpperCase();
      paths[path] = { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` };
    }
  }
  return { paths };
}

const patchParameters = ["dryRun", "fieldManager", "fieldValidation", "force"].map((name) => ({
  name,
  in: "query",
  schema: { type: "string", uniqueItems: true },
}));

/**
 * One OpenAPI v3 document. It lists the write operations and their parameter `fieldValidation`; kubectl reads nothing
 * more.
 */
export function openApiDocument(cluster: Cluster, group: string, version: string): JsonObject | undefined {
  const kinds = kindsIn(cluster, group, version);
  if (kinds.length === 0) return undefined;
  const paths: Record<string, JsonObject> = {};
  const schemas: Record<string, JsonObject> = {};
  for (const kind of kinds) {
    const gvk = { group, version, kind: kind.kind };
    const base = `/${openApiPath(group, version)}/${kind.namespaced ? "namespaces/{namespace}/" : ""}${kind.plural}`;
    const operation = { parameters: patchParameters, responses: {}, "x-kubernetes-group-version-kind": gvk };
    paths[`${base}/{name}`] = { patch: operation, put: operation };
    paths[base] = { post: operation };
    schemas[`${apiVersionOf(kind).replaceAll("/", ".")}.${kind.kind}`] = {
      type: "object",
      "x-kubernetes-group-version-kind": [gvk],
    };
  }
  return {
    openapi: "3.0.0",
    info: { title: "Kubernetes", version: cluster.options.version },
    paths,
    components: { schemas },
  };
}

/** GET /openapi/v2: an empty document. kubectl reads it where v3 does not know a kind, for example List. */
export function openApiV2(cluster: Cluster): JsonObject {
  return {
    swagger: "2.0",
    info: { title: "Kubernetes", version: cluster.options.version },
    paths: {},
    definitions: {},
    parameters: {},
    securityDefinitions: {},
    security: [],
  };
}

export const openApiV2Protobuf = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/**
 * The same document in the only format that kubectl reads (gnostic's openapi.v2.Document: swagger 1, info 2, paths 8).
 */
export function openApiV2Message(cluster: Cluster): string {
  // Every length is below 128 and takes one byte. All texts are ASCII.
  const field = (number: number, value: string) => String.fromCharCode(number * 8 + 2, value.length) + value;
  const info = field(1, "Kubernetes") + field(2, cluster.options.version);
  return field(1, "2.0") + field(2, info) + field(8, "");
}
