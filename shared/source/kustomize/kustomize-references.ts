import { isJsonObject, type Json } from "#shared/base/json.ts";
import {
  entriesOf,
  folded,
  isInline,
  type KustomizationEntry,
  type KustomizeScope,
  requireFile,
  requireYaml,
} from "#shared/source/kustomize/kustomize-scope.ts";
import { expansionOf } from "#shared/source/yaml/yaml.ts";

/** Members of a generator, a patch, a replacement or a plugin's configuration that are files of YAML. */
const yamlKeys = new Set(["path", "paths", "targetfilepath"]);
/** Those that are files of anything. */
const dataKeys = new Set(["files", "env", "envs"]);

/** Checks what one generator, patch, replacement or plugin's configuration refers to, or each of a list of them. */
export function checkReferences(
  scope: KustomizeScope,
  at: { readonly value: Json | undefined; readonly field: string },
): void {
  const { value, field } = at;
  const isSecret = makesSecrets(value, field);
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) checkReferences(scope, { value: item, field: `${field}[${index}]` });
    return;
  }
  if (!isJsonObject(value)) return;
  for (const [key, member] of Object.entries(value)) {
    const name = folded(key);
    const entries = entriesOf(member, `${field}.${key}`);
    if (name === "replacements") checkReferences(scope, { value: member, field: `${field}.${key}` });
    if (name === "patch" || name === "patches") for (const entry of entries) checkInPlace(scope, entry);
    if (yamlKeys.has(name)) for (const entry of entries) checkYaml(scope, entry);
    if (dataKeys.has(name))
      for (const entry of entries) requireFile(scope, { ...(name === "files" ? pathOf(entry) : entry), isSecret });
  }
}

/** A field of a kustomization, or the configuration of the plugin of that name. */
function makesSecrets(value: Json | undefined, field: string): boolean {
  return folded(field).startsWith("secretgenerator") || (isJsonObject(value) && value.kind === "SecretGenerator");
}

/** An entry that is a file of YAML, or YAML in place. */
export function checkYaml(scope: KustomizeScope, entry: KustomizationEntry): void {
  if (isInline(entry.value)) checkInPlace(scope, entry);
  else requireYaml(scope, entry);
}

function checkInPlace(scope: KustomizeScope, entry: KustomizationEntry): void {
  scope.weight.bytes += expansionOf(entry.value, `${scope.file}, ${entry.field}`);
}

/** Generators write `key=path`; a file name with an equals sign is a file all the same. */
function pathOf({ value, field }: KustomizationEntry): KustomizationEntry {
  return { value: value.slice(value.indexOf("=") + 1), field };
}
