import { isJsonObject, type Json, type JsonObject } from "#apiserver/json.ts";
import { immutableAt, type StrategyContext } from "#apiserver/kinds/strategy.ts";
import { listAt, stringAt, valueAt } from "#apiserver/object-fields.ts";
import { type FieldError, fieldErrors } from "#apiserver/status-error.ts";

/** A new CustomResourceDefinition has no conditions. An update keeps the status and adds each storage version to it. */
export function prepareCrd(object: JsonObject, { live }: StrategyContext): JsonObject {
  const storage = listAt(object, "spec", "versions").find((version) => valueAt(version, "storage") === true);
  const name = stringAt(storage, "name");
  const stored = live === undefined ? [] : listAt(live, "status", "storedVersions");
  const storedVersions = name === undefined || stored.includes(name) ? stored : [...stored, name];
  const kept = storedVersions.length === 0 ? null : storedVersions;
  if (live === undefined) {
    return { ...object, status: { conditions: null, acceptedNames: { plural: "", kind: "" }, storedVersions: kept } };
  }
  return { ...object, status: { ...(isJsonObject(object.status) ? object.status : {}), storedVersions: kept } };
}

/** The errors of a CustomResourceDefinition. */
export function crdErrors(object: JsonObject, context: StrategyContext): FieldError[] {
  const errors: FieldError[] = [];
  const plural = stringAt(object, "spec", "names", "plural") ?? "";
  const group = stringAt(object, "spec", "group") ?? "";
  const name = stringAt(object, "metadata", "name") ?? "";
  if (name !== `${plural}.${group}`) {
    errors.push(fieldErrors.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'));
  }
  const versions = listAt(object, "spec", "versions");
  for (const [index, version] of versions.entries()) {
    errors.push(...versionErrors(version, { index, single: versions.length === 1 }));
  }
  if (versions.filter((version) => valueAt(version, "storage") === true).length !== 1) {
    const detail = "must have exactly one version marked as storage version";
    errors.push(fieldErrors.invalid("spec.versions", versions.map(printVersion), detail));
  }
  errors.push(...storedVersionErrors(object, versions));
  if (context.live === undefined || !isEstablished(context.live)) return errors;
  return [
    ...errors,
    ...immutableAt("spec.group", "spec.scope", "spec.names.kind", "spec.names.plural")(object, context),
  ];
}

function storedVersionErrors(object: JsonObject, versions: readonly Json[]): FieldError[] {
  const stored = listAt(object, "status", "storedVersions");
  if (stored.length === 0) {
    return [fieldErrors.invalid("status.storedVersions", null, "must have at least one stored version")];
  }
  return stored.flatMap((version, index) => {
    if (versions.some((each) => valueAt(each, "name") === version)) return [];
    const detail = `missing from spec.versions; ${version} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${version} and removes ${version} from status.storedVersions`;
    return [fieldErrors.invalid(`status.storedVersions[${index}]`, version, detail)];
  });
}

function isEstablished(crd: JsonObject): boolean {
  return listAt(crd, "status", "conditions").some(
    (condition) => stringAt(condition, "type") === "Established" && stringAt(condition, "status") === "True",
  );
}

const emptyParts = ["DeprecationWarning", "Schema", "Subresources", "AdditionalPrinterColumns", "SelectableFields"];

/** A version as Go prints the struct. */
function printVersion(version: Json): Json {
  const flags = Object.fromEntries(
    ["Name", "Served", "Storage", "Deprecated"].map((key) => [key, valueAt(version, key.toLowerCase()) ?? false]),
  );
  return { ...flags, ...Object.fromEntries(emptyParts.map((key) => [key, null])) };
}

function versionErrors(version: Json, at: { readonly index: number; readonly single: boolean }): FieldError[] {
  const schema = valueAt(version, "schema", "openAPIV3Schema");
  const own = `spec.versions[${at.index}].schema.openAPIV3Schema`;
  if (!isJsonObject(schema)) return [fieldErrors.required(own)];
  const field = at.single ? "spec.validation.openAPIV3Schema" : own;
  const root =
    schema.type === undefined ? [fieldErrors.required(`${field}.type`, "must not be empty at the root")] : [];
  return [...structuralErrors(schema, field), ...root];
}

const missingFieldType = "must not be empty for specified object fields";

function structuralErrors(schema: JsonObject, field: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const [key, child] of Object.entries(isJsonObject(schema.properties) ? schema.properties : {})) {
    if (isJsonObject(child)) errors.push(...typeErrors(child, `${field}.properties[${key}]`, missingFieldType));
  }
  if (isJsonObject(schema.items)) {
    errors.push(...typeErrors(schema.items, `${field}.items`, "must not be empty for specified array items"));
  }
  if (isJsonObject(schema.additionalProperties)) {
    errors.push(...typeErrors(schema.additionalProperties, `${field}.additionalProperties`, missingFieldType));
  }
  return errors;
}

function typeErrors(schema: JsonObject, field: string, detail: string): FieldError[] {
  const free = schema["x-kubernetes-preserve-unknown-fields"] === true || schema["x-kubernetes-int-or-string"] === true;
  const errors = schema.type === undefined && !free ? [fieldErrors.required(`${field}.type`, detail)] : [];
  return [...errors, ...structuralErrors(schema, field)];
}
