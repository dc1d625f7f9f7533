/**
 * The plugin configurations of a kustomization. They refer to files and URLs like a kustomization does, from files of
 * their own, inline, or from the resources that another folder lists. Therefore all of them are read, and kustomize
 * gets the parsed form.
 */
import { isJsonObject, type Json, type JsonObject } from "#shared/base/json.ts";
import { kustomizationsOf } from "#shared/source/kustomization.ts";
import { checkReferences } from "#shared/source/kustomize/kustomize-references.ts";
import {
  entriesOf,
  folded,
  isInline,
  type KustomizationEntry,
  type KustomizeScope,
  kustomizationRefused,
  requireFile,
  resolve,
  textOf,
} from "#shared/source/kustomize/kustomize-scope.ts";
import { jsonAsYaml } from "#shared/source/yaml/json-as-yaml.ts";
import { parseDocuments } from "#shared/source/yaml/yaml.ts";

/** The plugins compiled into kustomize 5.7, except Helm's. kustomize compares kinds exactly, including case. */
const builtinKinds: ReadonlySet<string> = new Set([
  "AnnotationsTransformer",
  "ConfigMapGenerator",
  "HashTransformer",
  "IAMPolicyGenerator",
  "ImageTagTransformer",
  "LabelTransformer",
  "NamespaceTransformer",
  "PatchJson6902Transformer",
  "PatchStrategicMergeTransformer",
  "PatchTransformer",
  "PrefixSuffixTransformer",
  "PrefixTransformer",
  "ReplacementTransformer",
  "ReplicaCountTransformer",
  "SecretGenerator",
  "SuffixTransformer",
  "ValueAddTransformer",
]);

/** Deeper than any list of plugins. The limit stops folders that list each other. */
const maxDepth = 10;

/** @returns the field as kustomize is to read it: the same configurations, and only checked ones. */
export function readPlugins(scope: KustomizeScope, field: string, value: Json | undefined): Json {
  const entries = entriesOf(value, field);
  const inline = entries.filter((entry) => isInline(entry.value));
  const paths = entries.filter((entry) => !isInline(entry.value));
  const inPlace = inline.flatMap((entry) => pluginTexts(scope, { ...entry, text: entry.value, file: scope.file }));
  // kustomize, too, reads inline configurations before those in files.
  if (paths.every((entry) => !scope.folders.has(resolve(scope, entry)))) {
    for (const entry of paths) rewritePluginFile(scope, entry);
    return [...inPlace, ...paths.map((entry) => entry.value)];
  }
  return [...inPlace, ...paths.flatMap((entry) => textsBehind(scope, entry, 0))];
}

function rewritePluginFile(scope: KustomizeScope, entry: KustomizationEntry): void {
  const path = requireFile(scope, entry);
  const texts = pluginTexts(scope, { ...entry, text: textOf(scope, path), file: path });
  scope.inputs.set(path, new TextEncoder().encode(texts.join("\n---\n")));
}

/** The configurations in a file, or in a folder that only lists files. */
function textsBehind(scope: KustomizeScope, entry: KustomizationEntry, depth: number): string[] {
  const path = resolve(scope, entry);
  if (!scope.folders.has(path)) {
    requireFile(scope, entry);
    return pluginTexts(scope, { ...entry, text: textOf(scope, path), file: path });
  }
  const where = { file: scope.file, field: entry.field };
  if (depth > maxDepth) throw kustomizationRefused(where, `"${entry.value}" lists folders too deeply; name the files`);
  const [file, ...others] = kustomizationsOf(scope.files, path);
  if (file === undefined) throw kustomizationRefused(where, `"${entry.value}" has no kustomization; name the files`);
  if (others.length > 0)
    throw kustomizationRefused(where, `"${entry.value}" has more than one kustomization; keep one of them`);
  const listed = { ...scope, folder: path, file };
  return listedEntries(listed).flatMap((inner) => {
    const target = resolve(listed, inner);
    // References in a configuration are relative to the kustomization that uses it, not to the configuration's folder.
    return textsBehind(scope, { value: fromFolder(scope.folder, target), field: entry.field }, depth + 1);
  });
}

const plainMembers = new Set(["apiversion", "kind", "metadata", "resources"]);

/**
 * The entries of a folder that only lists configurations. If the folder also changed them, nobody could check the
 * result before the build.
 */
function listedEntries(scope: KustomizeScope): KustomizationEntry[] {
  const value = parseDocuments(textOf(scope, scope.file), scope.file)[0]?.value;
  const entries: KustomizationEntry[] = [];
  for (const [key, member] of Object.entries(isJsonObject(value) ? value : {})) {
    if (!plainMembers.has(folded(key))) {
      throw kustomizationRefused(
        { file: scope.file, field: key },
        "changes plugin configurations, so that Starling cannot check them before the build; keep only `resources` here, or name the plugins' files directly",
      );
    }
    if (folded(key) === "resources") entries.push(...entriesOf(member, key));
  }
  return entries;
}

/** A path of the artifact, relative to `folder`. */
function fromFolder(folder: string, path: string): string {
  const up = folder === "." ? "" : "../".repeat(folder.split("/").length);
  return `${up}${path}`;
}

interface PluginSource {
  readonly text: string;
  readonly file: string;
  readonly field: string;
}

/** The documents as JSON, each checked. */
function pluginTexts(scope: KustomizeScope, source: PluginSource): string[] {
  const { text, file, field } = source;
  return parseDocuments(text, file, { booleans: "1.2" }).map(({ value, document }) => {
    if (!isJsonObject(value))
      throw kustomizationRefused({ file, document, field }, "is not the configuration of a plugin");
    checkPlugin(scope, { value, file, document, field });
    return jsonAsYaml(value);
  });
}

function checkPlugin(
  scope: KustomizeScope,
  plugin: { readonly value: JsonObject; readonly file: string; readonly document: number; readonly field: string },
): void {
  const { value, file, document, field } = plugin;
  const { apiVersion, kind } = value;
  if (apiVersion !== "builtin" || typeof kind !== "string" || !builtinKinds.has(kind)) {
    throw kustomizationRefused(
      { file, document, field },
      `needs the plugin ${String(apiVersion)}/${String(kind)}; only the plugins built into kustomize run, without Helm charts: remove it`,
    );
  }
  const annotations = isJsonObject(value.metadata) ? value.metadata.annotations : undefined;
  for (const key of isJsonObject(annotations) ? Object.keys(annotations) : []) {
    if (!key.startsWith("config.kubernetes.io/function") && !key.startsWith("config.k8s.io/function")) continue;
    throw kustomizationRefused(
      { file, document, field: key },
      "asks for a function in a container or a program, which Starling does not run; remove it",
    );
  }
  checkReferences(scope, { value, field });
}
