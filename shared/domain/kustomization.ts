/**
 * What a kustomization may refer to: files and folders of the artifact, and nothing else. kustomize itself fetches any
 * URL it meets in a list of files (seen: resources and openapi.path), so every kustomization is read before it runs.
 */
import { isJsonObject, type Json } from "#shared/domain/json.ts";
import { ManifestError, type ManifestPlace } from "#shared/domain/manifest-error.ts";
import type { ListedFile } from "#shared/domain/tree-listing.ts";
import { parseDocuments } from "#shared/domain/yaml.ts";

/** The names kustomize recognises, in its order. */
export const kustomizationNames = ["kustomization.yaml", "kustomization.yml", "Kustomization"] as const;

/** More folders than any build has; bounds a kustomization that includes itself in ever longer ways. */
const maxFolders = 1000;

/** The path of the kustomization file of a folder (`.` is the artifact itself), or undefined. */
export function kustomizationOf(files: ReadonlyMap<string, ListedFile>, folder: string): string | undefined {
  return kustomizationsOf(files, folder)[0];
}

function kustomizationsOf(files: ReadonlyMap<string, ListedFile>, folder: string): string[] {
  return kustomizationNames.map((name) => joined(folder, name)).filter((path) => files.has(path));
}

/**
 * Walks every kustomization reachable from `folder`.
 * @returns the paths of all files that the build refers to: it may read these, and has no reason to see another.
 * @throws ManifestError `KustomizationRefused` naming file, field, value and remedy, for an entry that is a URL, is
 *   absolute, leaves the artifact or is not in it, for Helm charts, and for plugins that are not built into kustomize;
 *   `InvalidYaml` for a kustomization that cannot be read.
 */
export function checkKustomization(files: ReadonlyMap<string, ListedFile>, folder: string): ReadonlySet<string> {
  const folders = foldersOf(files);
  const used = new Set<string>();
  const waiting = [folder];
  const seen = new Set<string>(waiting);
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const file = kustomizationOf(files, next);
    if (file === undefined) {
      throw new ManifestError("KustomizationRefused", { file: next }, `holds no ${kustomizationNames.join(", no ")}`);
    }
    // All of them: kustomize refuses a folder that has two.
    for (const path of kustomizationsOf(files, next)) used.add(path);
    for (const found of checkFile({ files, folders, used, folder: next, file })) {
      if (seen.has(found)) continue;
      seen.add(found);
      waiting.push(found);
      if (seen.size > maxFolders) throw refused({ file }, `reaches more than ${maxFolders} folders`);
    }
  }
  return used;
}

interface Scope {
  readonly files: ReadonlyMap<string, ListedFile>;
  readonly folders: ReadonlySet<string>;
  /** Grows by every file that is referred to. */
  readonly used: Set<string>;
  readonly folder: string;
  readonly file: string;
}

/** Entries that are files or folders with a kustomization of their own. */
const folderFields = ["resources", "components", "bases"];
const fileFields = ["crds", "configurations"];
/** Entries that are files, or YAML written in place. */
const patchFields = ["patchesStrategicMerge"];
const pluginFields = ["generators", "transformers", "validators"];
/** Lists of objects with a `path`. */
const pathFields = ["patches", "patchesJson6902", "replacements"];
const generatorFields = ["configMapGenerator", "secretGenerator"];
const helmFields = ["helmCharts", "helmChartInflationGenerator", "helmGlobals"];

/** Checks one kustomization; gives the folders it includes. */
function checkFile(scope: Scope): string[] {
  const included: string[] = [];
  for (const { value } of parseDocuments(textOf(scope, scope.file), scope.file)) {
    if (!isJsonObject(value)) throw refused({ file: scope.file }, "is no map; write a Kustomization");
    for (const [key, member] of Object.entries(value)) {
      const field = fieldNames.get(folded(key)) ?? key;
      if (helmFields.includes(field) && !isEmpty(member)) {
        throw refused(
          { file: scope.file, field: key },
          "inflates Helm charts, which Starling does not do in a kustomization; commit the rendered chart instead",
        );
      }
      if (folderFields.includes(field)) included.push(...checkFolders(scope, field, member));
      if (fileFields.includes(field)) for (const entry of entriesOf(member, field)) requireFile(scope, entry);
      if (patchFields.includes(field)) for (const entry of entriesOf(member, field)) checkPatch(scope, entry);
      if (pluginFields.includes(field)) included.push(...checkPlugins(scope, field, member));
      // A list of texts under `patches` is the old spelling of patchesStrategicMerge.
      if (pathFields.includes(field)) for (const entry of entriesOf(member, field)) checkPatch(scope, entry);
      if (pathFields.includes(field)) checkReferences(scope, { value: member, field });
      if (generatorFields.includes(field)) checkReferences(scope, { value: member, field });
      if (field === "openapi") checkReferences(scope, { value: member, field });
    }
  }
  return included;
}

/** Go's JSON decoder ignores case when it matches fields, by Unicode's simple folding: `Reſources` is resources. */
function folded(key: string): string {
  return key.toUpperCase().toLowerCase();
}

const fieldNames = new Map(
  [
    ...folderFields,
    ...fileFields,
    ...patchFields,
    ...pluginFields,
    ...pathFields,
    ...generatorFields,
    ...helmFields,
    "openapi",
  ].map((name) => [folded(name), name]),
);

interface Entry {
  readonly value: string;
  readonly field: string;
}

function entriesOf(value: Json | undefined, field: string): Entry[] {
  if (!Array.isArray(value)) return typeof value === "string" ? [{ value, field }] : [];
  return value.flatMap((item: Json, index) =>
    typeof item === "string" ? [{ value: item, field: `${field}[${index}]` }] : [],
  );
}

function checkFolders(scope: Scope, field: string, value: Json | undefined): string[] {
  return entriesOf(value, field).flatMap((entry) => {
    const path = resolve(scope, entry);
    if (scope.folders.has(path)) return [path];
    requireFile(scope, entry);
    return [];
  });
}

function checkPatch(scope: Scope, entry: Entry): void {
  if (!isInline(entry.value)) requireFile(scope, entry);
}

/** A document in place of a path: it has lines, or a colon as YAML has them. A URL has neither. */
function isInline(text: string): boolean {
  return !isRemote(text) && (text.includes("\n") || /^\s*[{[]|:\s/.test(text));
}

/** Plugins run inside kustomize only when they are built into it, and their own files obey the same rules. */
function checkPlugins(scope: Scope, field: string, value: Json | undefined): string[] {
  const included: string[] = [];
  for (const entry of entriesOf(value, field)) {
    if (isInline(entry.value)) {
      checkPluginText(scope, { text: entry.value, file: scope.file, field: entry.field });
      continue;
    }
    const path = resolve(scope, entry);
    if (scope.folders.has(path)) {
      included.push(path);
      continue;
    }
    requireFile(scope, entry);
    checkPluginText(scope, { text: textOf(scope, path), file: path, field: entry.field });
  }
  return included;
}

function checkPluginText(
  scope: Scope,
  plugin: { readonly text: string; readonly file: string; readonly field: string },
): void {
  const { text, file, field } = plugin;
  for (const { value, document } of parseDocuments(text, file)) {
    if (!isJsonObject(value)) throw refused({ file, document, field }, "is no plugin's configuration");
    const { apiVersion, kind } = value;
    if (apiVersion !== "builtin" || typeof kind !== "string" || folded(kind).startsWith("helm")) {
      throw refused(
        { file, document, field },
        `asks for the plugin ${String(apiVersion)}/${String(kind)}; only plugins built into kustomize run, and no Helm charts`,
      );
    }
    const annotations = isJsonObject(value.metadata) ? value.metadata.annotations : undefined;
    for (const key of isJsonObject(annotations) ? Object.keys(annotations) : []) {
      if (!key.startsWith("config.kubernetes.io/function") && !key.startsWith("config.k8s.io/function")) continue;
      throw refused({ file, document, field: key }, "asks for a function in a container or program; none is run");
    }
    checkReferences(scope, { value, field });
  }
}

const referenceKeys = new Set(["path", "paths", "files", "env", "envs"]);

/** Checks every `path`, `files`, `env` and `envs` at any depth. */
function checkReferences(scope: Scope, at: { readonly value: Json | undefined; readonly field: string }): void {
  const { value, field } = at;
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) checkReferences(scope, { value: item, field: `${field}[${index}]` });
    return;
  }
  if (!isJsonObject(value)) return;
  for (const [key, member] of Object.entries(value)) {
    const name = `${field}.${key}`;
    // A field spec's `path` is a place in an object and no file.
    if (folded(key) === "fieldspecs") continue;
    if (!referenceKeys.has(folded(key))) {
      checkReferences(scope, { value: member, field: name });
      continue;
    }
    for (const entry of entriesOf(member, name)) {
      // Generators write `key=path`; a file name with an equals sign is a file all the same.
      const path = folded(key) === "files" ? entry.value.slice(entry.value.indexOf("=") + 1) : entry.value;
      if (folded(key) === "paths" && isInline(path)) continue;
      requireFile(scope, { value: path, field: entry.field });
    }
  }
}

function requireFile(scope: Scope, entry: Entry): void {
  const path = resolve(scope, entry);
  if (scope.files.has(path)) {
    scope.used.add(path);
    return;
  }
  throw refused(
    { file: scope.file, field: entry.field },
    `"${entry.value}" is not in the artifact; add its folder to the Source's spec.paths. Remote bases are not fetched and symbolic links not followed: commit a copy instead`,
  );
}

function resolve(scope: Scope, { value, field }: Entry): string {
  const where = { file: scope.file, field };
  if (isRemote(value)) {
    throw refused(where, `"${value}" is remote, and nothing is fetched while rendering; commit a copy of it`);
  }
  if (value.startsWith("/") || value.includes("\\") || value.includes("\0")) {
    throw refused(where, `"${value}" is an absolute path; write it relative to ${scope.file}`);
  }
  const parts = scope.folder === "." ? [] : scope.folder.split("/");
  for (const part of value.split("/")) {
    if (part === "" || part === ".") continue;
    if (part !== "..") parts.push(part);
    else if (parts.pop() === undefined) throw refused(where, `"${value}" leaves the artifact`);
  }
  return parts.length === 0 ? "." : parts.join("/");
}

/** A URL, an scp address or a `git::` prefix; other spellings of remote places fail because they are no file. */
function isRemote(value: string): boolean {
  if (/^\s*[a-z][a-z0-9+.-]*::?\/\/|^\s*(git|hg|s3|gcs)::/i.test(value)) return true;
  const host = /^[^/\s]*/.exec(value)?.[0] ?? "";
  const at = host.indexOf("@", 1);
  return at > 0 && host.indexOf(":", at + 2) > 0;
}

function isEmpty(value: Json | undefined): boolean {
  return value === null || value === undefined || (Array.isArray(value) && value.length === 0);
}

function foldersOf(files: ReadonlyMap<string, ListedFile>): Set<string> {
  const folders = new Set<string>(["."]);
  for (const path of files.keys()) {
    for (let slash = path.lastIndexOf("/"); slash > 0; slash = path.lastIndexOf("/", slash - 1)) {
      folders.add(path.slice(0, slash));
    }
  }
  return folders;
}

function textOf(scope: Scope, path: string): string {
  return new TextDecoder().decode(scope.files.get(path)?.content);
}

function joined(folder: string, name: string): string {
  return folder === "." ? name : `${folder}/${name}`;
}

function refused(place: ManifestPlace, reason: string): ManifestError {
  return new ManifestError("KustomizationRefused", place, reason);
}
