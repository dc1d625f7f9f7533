/**
 * Determines what a kustomization refers to: files and folders of the artifact, and nothing else. kustomize itself
 * fetches any URL in a list of files (seen: resources, openapi.path, plugins behind a folder). Therefore every
 * kustomization is read before kustomize runs, and kustomize gets the parsed form. A text that two parsers read
 * differently then has no effect.
 */
import { isJsonObject, type Json, type JsonObject } from "#shared/base/json.ts";
import { kustomizationNames, kustomizationsOf } from "#shared/source/kustomization.ts";
import type { InflatedChart } from "#shared/source/kustomize/inflated-chart.ts";
import { outputName, readCharts } from "#shared/source/kustomize/inflated-charts.ts";
import { readPlugins } from "#shared/source/kustomize/kustomize-plugins.ts";
import { checkReferences, checkYaml } from "#shared/source/kustomize/kustomize-references.ts";
import {
  type BuildFiles,
  entriesOf,
  folded,
  type KustomizeScope,
  kustomizationRefused,
  requireYaml,
  resolve,
  textOf,
} from "#shared/source/kustomize/kustomize-scope.ts";
import type { ListedFile } from "#shared/source/tree-listing.ts";
import { jsonAsYaml } from "#shared/source/yaml/json-as-yaml.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";
import { parseDocuments } from "#shared/source/yaml/yaml.ts";

/** More folders than any build has. The limit stops a kustomization that includes itself through ever longer paths. */
const maxFolders = 1000;
/**
 * The limit of everything that kustomize loads, in bytes. A base counts each time it is included: twenty folders of
 * which each includes the next one twice are a million copies. kustomize needs about fifty times as much memory.
 */
export const maxLoadedBytes = 64 * 1024 * 1024;

/**
 * Walks every kustomization reachable from `folder`.
 * @returns by path, the files that the build may see (it needs no other), and the charts whose objects are added to
 * them.
 * @throws ManifestError `KustomizationRefused` with file, field, value and remedy: for an entry that is a URL, is
 * absolute, leaves the artifact or is not in it, for a Helm chart that is not in it, for plugins that are not built
 * into kustomize, and for too many inclusions; `InvalidYaml` for a file that cannot be read or whose aliases expand too
 * far.
 */
export function kustomizeInputs(files: ReadonlyMap<string, ListedFile>, folder: string): KustomizeInputs {
  const build: BuildFiles = { files, folders: foldersOf(files), inputs: new Map(), expansions: new Map(), charts: [] };
  const waiting = [folder];
  const visited = new Map<string, Visit>();
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (visited.has(next)) continue;
    const visit = readFolder(build, next);
    visited.set(next, visit);
    waiting.push(...visit.included);
    if (visited.size > maxFolders)
      throw kustomizationRefused({ file: visit.file }, `reaches more than ${maxFolders} folders`);
  }
  checkLoad(visited, folder);
  return { files: build.inputs, charts: build.charts };
}

export interface KustomizeInputs {
  readonly files: ReadonlyMap<string, Uint8Array>;
  readonly charts: readonly InflatedChart[];
}

interface Visit {
  readonly file: string;
  /** The included folders, each as often as it is included. */
  readonly included: readonly string[];
  readonly bytes: number;
}

function readFolder(build: BuildFiles, folder: string): Visit {
  const [file, second] = kustomizationsOf(build.files, folder);
  if (file === undefined) {
    throw new ManifestError(
      "KustomizationRefused",
      { file: folder },
      `contains no ${kustomizationNames.join(", no ")}`,
    );
  }
  if (second !== undefined)
    throw kustomizationRefused({ file: second }, `is in the same folder as ${file}; keep one of them`);
  const scope = { ...build, folder, file, weight: { bytes: 0 } };
  // kustomize reads the first document only.
  const [first] = parseDocuments(textOf(build, file), file);
  const value = first?.document === 1 ? first.value : {};
  if (!isJsonObject(value)) throw kustomizationRefused({ file }, "must be a map that contains a Kustomization");
  const { understood, included } = readKustomization(scope, value);
  build.inputs.set(file, new TextEncoder().encode(jsonAsYaml(understood)));
  return { file, included, bytes: scope.weight.bytes };
}

/** Fields whose entries are files, or folders with a kustomization of their own. */
const folderFields = ["resources", "components", "bases"];
const fileFields = ["crds", "configurations"];
/** Fields whose entries are files or inline YAML. */
const patchFields = ["patchesStrategicMerge"];
const pluginFields = ["generators", "transformers", "validators"];
/** Fields whose objects, or lists of objects, refer to files. */
const referringFields = [
  "patches",
  "patchesJson6902",
  "replacements",
  "configMapGenerator",
  "secretGenerator",
  "openapi",
];
const helmFields = ["helmCharts", "helmChartInflationGenerator", "helmGlobals"];
/** The field to which rendered charts are added. */
const resources = "resources";

const fieldNames = new Map(
  [...folderFields, ...fileFields, ...patchFields, ...pluginFields, ...referringFields, ...helmFields].map((name) => [
    folded(name),
    name,
  ]),
);

/** Checks one kustomization. Returns the folders that it includes, and the form that kustomize reads in its place. */
function readKustomization(
  scope: KustomizeScope,
  value: JsonObject,
): { readonly understood: JsonObject; readonly included: readonly string[] } {
  const included: string[] = [];
  const understood: [string, Json | undefined][] = [];
  for (const [key, member] of Object.entries(value)) {
    const field = fieldNames.get(folded(key)) ?? key;
    if (helmFields.includes(field)) {
      if (field !== "helmChartInflationGenerator" || isEmpty(member)) continue;
      throw kustomizationRefused(
        { file: scope.file, field: key },
        "is the old field for Helm charts, which Starling does not support; write helmCharts, and commit the chart",
      );
    }
    if (folderFields.includes(field)) included.push(...readFolders(scope, field, member));
    if (fileFields.includes(field)) for (const entry of entriesOf(member, field)) requireYaml(scope, entry);
    // A list of strings in `patches` is the old spelling of patchesStrategicMerge.
    if (patchFields.includes(field) || field === "patches") {
      for (const entry of entriesOf(member, field)) checkYaml(scope, entry);
    }
    if (referringFields.includes(field)) checkReferences(scope, { value: member, field });
    understood.push([key, pluginFields.includes(field) ? readPlugins(scope, field, member) : member]);
  }
  return { understood: withCharts(scope, value, understood), included };
}

/** Adds the charts' objects at the end of the resources. */
function withCharts(
  scope: KustomizeScope,
  value: JsonObject,
  understood: readonly (readonly [string, Json | undefined])[],
): JsonObject {
  const [charts] = membersOf(value, "helmCharts");
  const [globals] = membersOf(value, "helmGlobals");
  if (charts === undefined || isEmpty(charts[1])) return Object.fromEntries(understood);
  const found = readCharts(scope, { field: charts[0], value: charts[1] ?? null, globals: globals?.[1] });
  scope.charts.push(...found);
  const isResources = ([key]: readonly [string, unknown]) => fieldNames.get(folded(key)) === resources;
  const listed = understood.filter(isResources).flatMap(([, member]) => (Array.isArray(member) ? member : []));
  const names = found.map((_chart, index) => outputName(index));
  return { ...Object.fromEntries(understood.filter((one) => !isResources(one))), [resources]: [...listed, ...names] };
}

/** The members with this name in any case. */
function membersOf(value: JsonObject, field: string): readonly (readonly [string, Json | undefined])[] {
  return Object.entries(value).filter(([key]) => fieldNames.get(folded(key)) === field);
}

function readFolders(scope: KustomizeScope, field: string, value: Json | undefined): string[] {
  return entriesOf(value, field).flatMap((entry) => {
    const path = resolve(scope, entry);
    if (scope.folders.has(path)) {
      if (kustomizationsOf(scope.files, path).length > 0) return [path];
      throw kustomizationRefused(
        { file: scope.file, field: entry.field },
        `"${entry.value}" has no kustomization.yaml; add one, or name the folder's files`,
      );
    }
    requireYaml(scope, entry);
    return [];
  });
}

/**
 * @throws ManifestError when the folders, each counted as often as it is included, are more than kustomize has memory
 * for.
 */
function checkLoad(visited: ReadonlyMap<string, Visit>, start: string): void {
  const loads = new Map<string, number>();
  function loadOf(folder: string): number {
    const known = loads.get(folder);
    if (known !== undefined) return known;
    // The value 0 ends the recursion for folders that include each other. kustomize refuses them.
    loads.set(folder, 0);
    const visit = visited.get(folder);
    let load = visit?.bytes ?? 0;
    // An empty folder needs memory, too.
    for (const other of visit?.included ?? []) load += loadOf(other) + 1024;
    loads.set(folder, load);
    return load;
  }
  const load = loadOf(start);
  const visit = visited.get(start);
  if (load <= maxLoadedBytes || visit === undefined) return;
  throw kustomizationRefused(
    { file: visit.file },
    `makes kustomize load ${load} bytes, more than ${maxLoadedBytes}: a base counts each time it is included, and an alias counts with its full text; include the base less often, or split the folder`,
  );
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
