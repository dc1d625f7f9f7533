/** The fleet of the busy day: two groups that share clusters, a Sync that a user wrote, and their content in git. */
import { parseJson } from "#shared/base/json.ts";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import { groupDocument, namespaceManifest, ringStages, sourceDocument, yaml } from "#test/support/e2e-documents.ts";
import { type NewCluster, namespace, type World } from "#test/support/e2e-world.ts";

/**
 * The folders of the repository. Each has the name of its Sync on a cluster, and the Kubernetes namespace of its
 * objects.
 */
export const parts = {
  deploy: { sync: "web.app", home: namespace },
  tools: { sync: "tools.app", home: "tools" },
  own: { sync: "own", home: "own" },
} as const;
export type Folder = keyof typeof parts;

/** The first cluster is the canary. `tools` and `web` share the others, and c1 has the user's Sync. */
export const busyClusters: readonly NewCluster[] = [
  { name: "c1", labels: { ring: "canary", web: "yes" } },
  { name: "c2", labels: { ring: "broad", web: "yes" } },
  { name: "c3", labels: { ring: "broad", web: "yes" } },
];

/** The clusters of each folder at the beginning. */
export const busyPlaces: Readonly<Record<Folder, readonly string[]>> = {
  deploy: ["c1", "c2", "c3"],
  tools: ["c2", "c3"],
  own: ["c1"],
};

/** Every object is checked several times while a test waits for nothing to change. */
const shortest = 20;

export function busySource(world: World) {
  return sourceDocument("app", {
    git: { url: world.git.url("app"), ref: { branch: "main" } },
    paths: Object.keys(parts),
    interval: "60s",
  });
}

/** @param seconds - the interval of checks. Another interval changes the spec without a change of content. */
export function webDocument(seconds = shortest) {
  return groupDocument("web", {
    clusters: { selector: { matchLabels: { web: "yes" } } },
    templates: [{ name: "app", source: "app", path: "deploy", apply: { interval: `${seconds}s` } }],
    rollout: { maxConcurrent: 2, progressDeadline: "4h", stages: ringStages("canary", "broad") },
  });
}

export function toolsDocument() {
  return groupDocument("tools", {
    clusters: { names: [...busyPlaces.tools] },
    templates: [{ name: "app", source: "app", path: "tools", apply: { interval: "1h" } }],
    rollout: { maxConcurrent: 2, progressDeadline: "4h" },
  });
}

/** @param seconds - the interval of checks, as for the group. */
export function ownDocument(seconds = shortest) {
  return {
    apiVersion: ourApiVersion,
    kind: "Sync",
    metadata: { name: "own", namespace },
    spec: { cluster: "c1", source: "app", path: "own", apply: { interval: `${seconds}s` } },
  };
}

/** The content of files; `null` deletes a file. */
export type Contents = Readonly<Record<string, Readonly<Record<string, string>> | null>>;

/**
 * Files with ConfigMaps by `<folder>/<name>`. A ConfigMap without a namespace belongs to the namespace of its folder.
 */
export function filesOf(rollouts: Contents): Record<string, string | null> {
  const files = Object.entries(rollouts).map(([place, data]) => {
    const [folder, name = ""] = place.split("/") as [Folder, string];
    return [`${place}.yaml`, data === null ? null : mapOf(name, { data, home: homeOf(folder, name) })] as const;
  });
  return Object.fromEntries(files);
}

/** An object of both groups is in the namespace of the first group. */
function homeOf(folder: Folder, name: string): string {
  return name === shared ? parts.deploy.home : parts[folder].home;
}
export const shared = "shared";

function mapOf(name: string, { data, home }: { readonly data: unknown; readonly home: string }): string {
  return yaml({ apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace: home }, data });
}

export const homesOfAll: Record<string, string> = {
  "deploy/namespace.yaml": namespaceManifest,
  "tools/namespace.yaml": homeManifest(parts.tools.home),
  "own/namespace.yaml": homeManifest(parts.own.home),
};

function homeManifest(name: string): string {
  return yaml({ apiVersion: "v1", kind: "Namespace", metadata: { name } });
}

export interface DesiredObject {
  readonly path: string;
  readonly title: string;
  readonly data?: unknown;
}

/** The object in a file, with its name in the API server. */
export function desiredObject(file: string): DesiredObject {
  const { kind, metadata, data } = parseJson(file.replace(/^---\n/, "")) as unknown as {
    readonly kind: string;
    readonly metadata: { readonly name: string; readonly namespace?: string };
    readonly data?: unknown;
  };
  const { name, namespace: home } = metadata;
  if (kind === "Namespace") return { path: `/api/v1/namespaces/${name}`, title: `Namespace ${name}` };
  return { path: mapPath(`${home}/${name}`), title: `ConfigMap ${home}/${name}`, data };
}

/** @param place - `<namespace>/<name>` */
export function mapPath(place: string): string {
  return `/api/v1/namespaces/${place.replace("/", "/configmaps/")}`;
}
