/** Documents of another tool as documents of Starling, and the parts that have no counterpart. */
import { isJsonObject, type Json, type JsonObject } from "#shared/base/json.ts";
import { dnsLabel } from "#shared/base/name-schema.ts";
import { parseDocument } from "#shared/fleet/kinds/document.ts";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import { semanticProblems } from "#shared/fleet/kinds/semantics.ts";
import { stringAt } from "#shared/kube/kube-object.ts";
import { normalFolder } from "#shared/source/tree-listing.ts";

export interface Said {
  readonly documents: readonly JsonObject[];
  /** Remarks, each with the object that it is about. */
  readonly remarks: readonly string[];
}

/** The folders of a repository, when it is available. */
export type FoldersOf = (url: string) => readonly string[] | undefined;

/** A selector that no cluster matches: a document that nobody has reviewed is applied nowhere. */
export const unknownCluster: JsonObject = { names: ["name-of-the-cluster"] };
export const whichClusters =
  "the document does not say which clusters it is for: write their names or labels into spec.clusters";

export function joined(all: readonly Said[]): Said {
  return { documents: all.flatMap(({ documents }) => documents), remarks: all.flatMap(({ remarks }) => remarks) };
}

export function remarked(...remarks: readonly string[]): Said {
  return { documents: [], remarks };
}

export function member(object: Json | undefined, name: string): JsonObject {
  const value = isJsonObject(object) ? object[name] : undefined;
  return isJsonObject(value) ? value : {};
}

/** A valid name in Starling. */
export function nameOf(text: string): string {
  const plain = text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .slice(0, 63)
    .replaceAll(/^-+|-+$/g, "");
  return dnsLabel.test(plain) ? plain : "app";
}

export function namesOf(object: Json | undefined): { readonly name: string; readonly namespace: string } {
  const name = nameOf(stringAt(object, "metadata", "name") ?? "app");
  return { name, namespace: nameOf(stringAt(object, "metadata", "namespace") ?? "default") };
}

/** `Application argocd/shop`, for remarks. */
export function titleOf(object: Json | undefined): string {
  const namespace = stringAt(object, "metadata", "namespace");
  const name = stringAt(object, "metadata", "name") ?? "without a name";
  return `${stringAt(object, "kind")} ${namespace === undefined ? "" : `${namespace}/`}${name}`;
}

/** Fields without a counterpart, by their paths. */
export function leftOver(object: JsonObject, within: string, taken: readonly string[]): readonly string[] {
  return Object.keys(object).flatMap((name) => (taken.includes(name) ? [] : [`${within}.${name}`]));
}

export function notCarried(title: string, fields: readonly string[]): readonly string[] {
  return fields.length === 0 ? [] : [`${title}: not carried over: ${fields.join(", ")}`];
}

/** `HEAD` and an absent reference mean the repository's default branch. */
export function gitRefFrom(revision: string | undefined): JsonObject | undefined {
  if (revision === undefined || revision === "" || revision === "HEAD") return undefined;
  if (/^[0-9a-f]{40}$/.test(revision)) return { commit: revision };
  if (/^refs\/tags\//.test(revision)) return { tag: revision.slice("refs/tags/".length) };
  if (/^v?\d+\.\d+\.\d+/.test(revision)) return { tag: revision };
  if (/[\^~*<>=x]\d|\.(x|\*)/.test(revision)) return { semver: revision };
  const branch = revision.replace(/^refs\/heads\//, "");
  return branch.startsWith("refs/") ? { name: branch } : { branch };
}

export interface DesiredGroup {
  readonly name: string;
  readonly namespace: string;
  readonly clusters: JsonObject;
  readonly templates: readonly JsonObject[];
}

export function groupDocument({ name, namespace, clusters, templates }: DesiredGroup): JsonObject {
  const spec = { clusters, templates };
  return { apiVersion: ourApiVersion, kind: "SyncGroup", metadata: { name, namespace }, spec };
}

/** The problem that `validate` finds, or undefined. */
function documentProblem(document: JsonObject): string | undefined {
  const parsed = parseDocument(document);
  const [problem] = parsed.ok ? semanticProblems(parsed.document) : parsed.problems;
  return problem === undefined ? undefined : `${problem.field} ${problem.message}`;
}

/** Documents that `validate` accepts, each once; the others are named. */
export function checked({ documents, remarks }: Said): Said {
  const taken = new Map<string, JsonObject>();
  const problems = documents.flatMap((document) => {
    const problem = documentProblem(document);
    if (problem !== undefined) return [`${titleOf(document)} cannot be written: ${problem}`];
    taken.set(JSON.stringify(document), document);
    return [];
  });
  return { documents: [...taken.values()], remarks: [...new Set([...remarks, ...problems])] };
}

/** The template with those of the fields that exist and have the same form in both tools. */
export function withFitting(
  template: JsonObject,
  extras: JsonObject,
): { readonly template: JsonObject; readonly left: readonly string[] } {
  let fitting = template;
  const left: string[] = [];
  for (const [name, value] of Object.entries(extras)) {
    if (value === undefined) continue;
    const tried = { ...fitting, [name]: value };
    const group = groupDocument({ name: "a", namespace: "a", clusters: { all: true }, templates: [tried] });
    if (documentProblem(group) === undefined) fitting = tried;
    else left.push(name);
  }
  return { template: fitting, left };
}

/** A folder in the form of a template, or the reason why it cannot be one. */
export function folderOf(
  path: string,
  folders: readonly string[] | undefined,
): { readonly path: string; readonly problem?: string } {
  const folder = normalFolder(path.replace(/^\/+/, ""));
  if (folders === undefined || folder === "." || folder.includes("{{") || folders.includes(folder))
    return { path: folder };
  return { path: folder, problem: `the repository here has no folder ${folder}` };
}
