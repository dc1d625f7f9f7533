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

/** Fields of a generator, a patch, a replacement or a plugin's configuration that name YAML files. */
const yamlKeys = new Set(["path", "paths", "targetfilepath"]);
/** Fields that name files of any content. */
const dataKeys = new Set(["files", "env", "envs"]);

/**
 * Checks the references of a generator, a patch, a replacement or a plugin's configuration, or of each one in a list.
 */
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

/** Whether the value is a kustomization's secretGenerator, or a configuration of kind SecretGenerator. */
function makesSecrets(value: Json | undefined, field: string): boolean {
  return folded(field).startsWith("secretgenerator") || (isJsonObject(value) && value.kind === "SecretGenerator");
}

/** Checks an entry that is a YAML file or inline YAML. */
export function checkYaml(scope: KustomizeScope, entry: KustomizationEntry): void {
  if (isInline(entry.value)) checkInPlace(scope, entry);
  else requireYaml(scope, entry);
}

function checkInPlace(scope: KustomizeScope, entry: KustomizationEntry): void {
  scope.weight.bytes += expansionOf(entry.value, `${scope.file}, ${entry.field}`);
}

/** Generators write `key=path`. Everything after the first equals sign is the path. */
function pathOf({ value, field }: KustomizationEntry): KustomizationEntry {
  return { value: value.slice(value.indexOf("=") + 1), field };
}
