/** Reads a cluster with kubectl, and compares it with kubectl's own result for a folder. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { isJsonObject, type Json, type JsonObject, parseJson, stringifyJson } from "#shared/base/json.ts";

const run = promisify(execFile);
const maxOutputBytes = 64 * 1024 * 1024;
const partOf = "applyset.kubernetes.io/part-of";

export interface ClusterReaderOptions {
  /** The path of kubectl. */
  readonly kubectl: string;
  readonly kubeconfig: string;
  readonly context: string;
}

export type Kubectl = (...args: readonly string[]) => Promise<string>;

export function clusterReader({ kubectl, kubeconfig, context }: ClusterReaderOptions): Kubectl {
  return async (...args) => {
    const all = ["--kubeconfig", kubeconfig, "--context", context, ...args];
    return (await run(kubectl, all, { maxBuffer: maxOutputBytes })).stdout;
  };
}

export interface Given {
  /** The path of a file with manifests. */
  readonly file: string;
  /** The decoded manifests of the file. */
  readonly given: readonly JsonObject[];
}

/** The objects of a manifest file as kubectl reads them, with Lists split into their items. */
export async function decodeManifests(kubectl: string, file: string): Promise<readonly JsonObject[]> {
  const mark = "starling.test/decoded";
  const { stdout } = await run(kubectl, ["annotate", "--local", "-f", file, `${mark}=`, "-o", "json"], {
    maxBuffer: maxOutputBytes,
  });
  return documentsOf(stdout).map((object) => withoutAnnotation(object, mark));
}

/**
 * All differences between the cluster and the given objects: a field that is missing or different, a field that
 * Starling owns and the manifests do not set, and an additional object of the set. Empty when there are none.
 */
export async function differences(cluster: Kubectl, { file, given }: Given): Promise<string[]> {
  const found = documentsOf(await cluster("get", "-f", file, "-o", "json", "--show-managed-fields"));
  const byId = new Map(found.map((object) => [identity(object), object]));
  const different = given.flatMap((object) => {
    const live = byId.get(identity(object)) ?? byId.get(identity(object, "default"));
    if (live !== undefined) return objectDifferences(object, live);
    // kustomize adds a namespace to cluster-scoped objects of unknown kinds, and the API server drops it.
    const bare = withoutNamespace(object);
    const atClusterScope = byId.get(identity(bare));
    return atClusterScope === undefined
      ? [`${identity(object)} is not there`]
      : objectDifferences(bare, atClusterScope);
  });
  const desired = new Set(found.map((object) => identity(object)));
  const members = await membersOf(cluster);
  const further = members.filter((id) => !desired.has(id)).map((id) => `${id} has the set's label, but nobody gave it`);
  const unlabelled = [...desired].filter((id) => !members.includes(id)).map((id) => `${id} has no label of the set`);
  return [...different, ...further, ...unlabelled];
}

/**
 * The objects with the label that Starling has applied. The control plane copies labels of a Service to its endpoints,
 * which do not count.
 */
export async function membersOf(cluster: Kubectl): Promise<readonly string[]> {
  const resources = (await cluster("api-resources", "--verbs=list", "-o", "name")).trim().split("\n");
  const listed = documentsOf(
    await cluster("get", resources.join(","), "-A", "-l", partOf, "-o", "json", "--show-managed-fields"),
  );
  return listed.filter((object) => ownEntries(object).length > 0).map((object) => identity(object));
}

function objectDifferences(given: JsonObject, live: JsonObject): string[] {
  const id = identity(given);
  return [
    ...missing(given, live).map((text) => `${id} ${text}`),
    ...ownedBeyond(given, live).map((text) => `${id} ${text}`),
  ];
}

/** The given values that the cluster does not have, as `path: given X, found Y`. */
function missing(given: Json, live: Json | undefined, path = ""): string[] {
  if (isJsonObject(given) && isJsonObject(live)) {
    return Object.entries(given).flatMap(([key, value]) =>
      value === undefined ? [] : missing(value, live[key], `${path}.${key}`),
    );
  }
  if (Array.isArray(given) && Array.isArray(live) && given.length === live.length) {
    return given.flatMap((value, index) => missing(value, live[index], `${path}[${index}]`));
  }
  const found = live === undefined ? "nothing" : stringifyJson(live);
  return stringifyJson(given) === found ? [] : [`${path}: given ${stringifyJson(given)}, found ${found}`];
}

/** Fields that Starling's apply owns and the manifests do not set, except for its label. */
function ownedBeyond(given: JsonObject, live: JsonObject): string[] {
  const own = ownEntries(live);
  if (own.length !== 1 || own[0]?.operation !== "Apply") {
    return [`has ${own.length} entries of starling: ${own.map(({ operation }) => operation).join(", ")}`];
  }
  const fields = own[0].fieldsV1;
  if (!isJsonObject(fields)) return ["has no fields of starling"];
  return beyond(fields, given)
    .filter((path) => path !== `.metadata.labels.${partOf}`)
    .map((path) => `${path} is owned`);
}

function ownEntries(object: JsonObject): JsonObject[] {
  const { managedFields } = isJsonObject(object.metadata) ? object.metadata : {};
  const entries = Array.isArray(managedFields) ? managedFields.filter(isJsonObject) : [];
  return entries.filter(({ manager }) => manager === "starling");
}

const name = (member: string) => member.slice(2);

function beyond(fields: JsonObject, given: Json | undefined, path = ""): string[] {
  return Object.entries(fields).flatMap(([member, below]) => {
    if (member === ".") return given === undefined ? [path] : [];
    const at = path + (member.startsWith("f:") ? `.${name(member)}` : `[${member}]`);
    const value = memberOf(given, member);
    const isLeaf = !isJsonObject(below) || Object.keys(below).length === 0;
    if (isLeaf) return value === undefined ? [at] : [];
    // The protocol of a port is part of its key, so Starling sets it even if the manifest does not.
    const ofKey = member.startsWith("k:") ? parseJson(name(member)) : {};
    return beyond(below, isJsonObject(value) && isJsonObject(ofKey) ? { ...ofKey, ...value } : value, at);
  });
}

/**
 * The part of a value that an entry of `fieldsV1` names: `f:` a field, `k:` an item by its keys, `v:` an item by value.
 */
function memberOf(value: Json | undefined, member: string): Json | undefined {
  if (member.startsWith("f:")) return isJsonObject(value) ? value[name(member)] : undefined;
  if (!Array.isArray(value)) return undefined;
  const desired = parseJson(name(member));
  if (!isJsonObject(desired)) return value.find((element) => stringifyJson(element) === stringifyJson(desired));
  // A key that the manifest does not set has its default, for example the protocol of a port.
  return value.find(
    (element) =>
      isJsonObject(element) &&
      Object.entries(desired).every(
        ([key, part]) => element[key] === undefined || stringifyJson(element[key]) === stringifyJson(part),
      ),
  );
}

/** kubectl prints one document after another. A closing brace in the first column ends a document. */
function documentsOf(text: string): JsonObject[] {
  return text
    .split(/(?<=^\}\n)/m)
    .filter((document) => document.trim() !== "")
    .flatMap((document) => flattened(parseJson(document)));
}

function flattened(value: Json): JsonObject[] {
  if (!isJsonObject(value)) return [];
  if (typeof value.kind === "string" && value.kind.endsWith("List") && Array.isArray(value.items)) {
    return value.items.flatMap(flattened);
  }
  return [value];
}

function withoutAnnotation(object: JsonObject, name: string): JsonObject {
  const metadata = isJsonObject(object.metadata) ? object.metadata : {};
  const { [name]: _mark, ...annotations } = isJsonObject(metadata.annotations) ? metadata.annotations : {};
  const { annotations: _all, ...rest } = metadata;
  return { ...object, metadata: Object.keys(annotations).length === 0 ? rest : { ...rest, annotations } };
}

function withoutNamespace(object: JsonObject): JsonObject {
  const { namespace: _dropped, ...metadata } = isJsonObject(object.metadata) ? object.metadata : {};
  return { ...object, metadata };
}

function identity(object: JsonObject, defaultNamespace = ""): string {
  const { name, namespace } = isJsonObject(object.metadata) ? object.metadata : {};
  return `${object.apiVersion} ${object.kind} ${namespace ?? defaultNamespace}/${name}`;
}
