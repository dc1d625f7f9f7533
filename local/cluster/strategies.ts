import type { Cluster } from "#local/cluster/cluster.ts";
import { deepEqual } from "#local/cluster/deep-equal.ts";
import type { Kind } from "#local/cluster/kinds.ts";
import { allocateService, serviceErrors } from "#local/cluster/service-strategy.ts";
import { type FieldError, fieldErrors } from "#local/cluster/status-error.ts";
import { isJsonObject, type Json, type JsonObject } from "#shared/domain/json.ts";
import { listAt, stringAt, valueAt } from "#shared/domain/kube-object.ts";

export interface StrategyContext {
  readonly cluster: Cluster;
  /** Undefined on create. */
  readonly live: JsonObject | undefined;
}

/** What a kind does beyond the rules for every object. */
export interface Strategy {
  /** Fills what the server alone decides. */
  readonly prepare?: (object: JsonObject, context: StrategyContext) => JsonObject;
  readonly validate?: (object: JsonObject, context: StrategyContext) => FieldError[];
}

function prepareNamespace(object: JsonObject, { live }: StrategyContext): JsonObject {
  const spec = live === undefined ? { finalizers: ["kubernetes"] } : (live.spec ?? {});
  const status = live === undefined ? { phase: "Active" } : (live.status ?? {});
  return { ...object, spec, status };
}

const dataKey = /^[-._a-zA-Z0-9]+$/;
const dataKeyMessage =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const maxDataBytes = 1024 * 1024;

function keyProblem(key: string): string | undefined {
  if (key.length > 253) return "must be no more than 253 characters";
  if (key === "." || key === "..") return `must not be '${key}'`;
  if (key.startsWith("..")) return "must not start with '..'";
  return dataKey.test(key) ? undefined : dataKeyMessage;
}

function members(object: JsonObject, name: string): [string, string][] {
  const map = object[name];
  return isJsonObject(map) ? Object.entries(map).map(([key, value]) => [key, String(value ?? "")]) : [];
}

function decodedBytes(base64: string): number {
  return Math.floor((base64.replace(/=+$/, "").length * 3) / 4);
}

function configMapErrors(object: JsonObject, { live }: StrategyContext): FieldError[] {
  const errors: FieldError[] = [];
  const binary = new Map(members(object, "binaryData"));
  let bytes = 0;
  for (const [key, value] of members(object, "data")) {
    const problem = keyProblem(key);
    if (problem !== undefined) errors.push(fieldErrors.invalid(`data[${key}]`, key, problem));
    if (binary.has(key))
      errors.push(fieldErrors.invalid(`data[${key}]`, key, "duplicate of key present in binaryData"));
    bytes += Buffer.byteLength(value);
  }
  for (const [key, value] of binary) {
    const problem = keyProblem(key);
    if (problem !== undefined) errors.push(fieldErrors.invalid(`binaryData[${key}]`, key, problem));
    bytes += decodedBytes(value);
  }
  if (bytes > maxDataBytes) errors.push(fieldErrors.tooLong("", maxDataBytes));
  return [...errors, ...immutableDataErrors(object, live)];
}

function secretErrors(object: JsonObject, { live }: StrategyContext): FieldError[] {
  const errors: FieldError[] = [];
  let bytes = 0;
  for (const [key, value] of members(object, "data")) {
    const problem = keyProblem(key);
    if (problem !== undefined) errors.push(fieldErrors.invalid(`data[${key}]`, key, problem));
    bytes += decodedBytes(value);
  }
  if (bytes > maxDataBytes) errors.push(fieldErrors.tooLong("data", maxDataBytes));
  if (live !== undefined && live.type !== object.type) errors.push(immutable("type", object.type));
  return [...errors, ...immutableDataErrors(object, live)];
}

function immutableDataErrors(object: JsonObject, live: JsonObject | undefined): FieldError[] {
  if (live?.immutable !== true) return [];
  const errors: FieldError[] = [];
  if (object.immutable !== true)
    errors.push(fieldErrors.forbidden("immutable", "field is immutable when `immutable` is set"));
  for (const name of ["data", "binaryData"]) {
    if (!deepEqual(object[name], live[name]))
      errors.push(fieldErrors.forbidden(name, "field is immutable when `immutable` is set"));
  }
  return errors;
}

function immutable(field: string, value: Json | undefined): FieldError {
  return fieldErrors.invalid(field, value ?? null, "field is immutable");
}

/** Fields that may not change once set, by path from the object. */
function immutableAt(...paths: readonly string[]): NonNullable<Strategy["validate"]> {
  return (object, { live }) => {
    if (live === undefined) return [];
    const errors: FieldError[] = [];
    for (const path of paths) {
      const value = valueAt(object, ...path.split("."));
      if (!deepEqual(value, valueAt(live, ...path.split(".")))) errors.push(immutable(path, value));
    }
    return errors;
  };
}

function both(...rules: readonly NonNullable<Strategy["validate"]>[]): NonNullable<Strategy["validate"]> {
  return (object, context) => rules.flatMap((rule) => rule(object, context));
}

function containerErrors(spec: Json | undefined, field: string): FieldError[] {
  const errors: FieldError[] = [];
  const containers = listAt(spec, "containers");
  if (containers.length === 0) errors.push(fieldErrors.required(`${field}.containers`));
  for (const list of ["initContainers", "containers"]) {
    for (const [index, container] of listAt(spec, list).entries()) {
      const at = `${field}.${list}[${index}]`;
      if ((stringAt(container, "name") ?? "") === "") errors.push(fieldErrors.required(`${at}.name`));
      if ((stringAt(container, "image") ?? "") === "" && list === "containers" && field === "spec") {
        errors.push(fieldErrors.required(`${at}.image`));
      }
      for (const [position, port] of listAt(container, "ports").entries()) {
        const number = valueAt(port, "containerPort");
        if (number === undefined || number === 0)
          errors.push(fieldErrors.required(`${at}.ports[${position}].containerPort`));
      }
    }
  }
  return errors;
}

/** A selector that selects nothing, or not the template's labels; and what is wrong with the template. */
function workloadErrors(object: JsonObject): FieldError[] {
  const errors: FieldError[] = [];
  const selector = valueAt(object, "spec", "selector");
  const wanted = valueAt(selector, "matchLabels");
  const labels = valueAt(object, "spec", "template", "metadata", "labels");
  const empty = wanted === undefined && listAt(selector, "matchExpressions").length === 0;
  if (!isJsonObject(selector)) errors.push(fieldErrors.required("spec.selector"));
  else if (empty)
    errors.push(fieldErrors.invalid("spec.selector", selector, "empty selector is invalid for deployment"));
  const given = isJsonObject(labels) ? labels : {};
  const misses = Object.entries(isJsonObject(wanted) ? wanted : {}).some(([key, value]) => given[key] !== value);
  if (misses) {
    errors.push(
      fieldErrors.invalid("spec.template.metadata.labels", given, "`selector` does not match template `labels`"),
    );
  }
  return [...errors, ...containerErrors(valueAt(object, "spec", "template", "spec"), "spec.template.spec")];
}

const crdPrintedVersion = ["Name", "Served", "Storage", "Deprecated"];

function crdErrors(object: JsonObject, { live }: StrategyContext): FieldError[] {
  const errors: FieldError[] = [];
  const plural = stringAt(object, "spec", "names", "plural") ?? "";
  const group = stringAt(object, "spec", "group") ?? "";
  const name = stringAt(object, "metadata", "name") ?? "";
  if (name !== `${plural}.${group}`) {
    errors.push(fieldErrors.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'));
  }
  const versions = listAt(object, "spec", "versions");
  for (const [index, version] of versions.entries())
    errors.push(...crdSchemaErrors(version, { index, single: versions.length === 1 }));
  if (versions.filter((version) => valueAt(version, "storage") === true).length !== 1) {
    const printed = versions.map((version) => printVersion(version));
    errors.push(
      fieldErrors.invalid("spec.versions", printed, "must have exactly one version marked as storage version"),
    );
  }
  const stored = listAt(object, "status", "storedVersions");
  if (stored.length === 0) {
    errors.push(fieldErrors.invalid("status.storedVersions", null, "must have at least one stored version"));
  }
  for (const [index, version] of stored.entries()) {
    if (versions.some((each) => valueAt(each, "name") === version)) continue;
    const detail = `missing from spec.versions; ${version} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${version} and removes ${version} from status.storedVersions`;
    errors.push(fieldErrors.invalid(`status.storedVersions[${index}]`, version, detail));
  }
  if (live === undefined || !isEstablished(live)) return errors;
  return [
    ...errors,
    ...immutableAt(
      "spec.group",
      "spec.scope",
      "spec.names.kind",
      "spec.names.plural",
    )(object, { live } as StrategyContext),
  ];
}

function isEstablished(crd: JsonObject): boolean {
  return listAt(crd, "status", "conditions").some(
    (condition) => stringAt(condition, "type") === "Established" && stringAt(condition, "status") === "True",
  );
}

function printVersion(version: Json): Json {
  const printed: Record<string, Json> = {};
  for (const key of crdPrintedVersion) printed[key] = valueAt(version, key.toLowerCase()) ?? false;
  for (const key of ["DeprecationWarning", "Schema", "Subresources", "AdditionalPrinterColumns", "SelectableFields"])
    printed[key] = null;
  return printed;
}

function crdSchemaErrors(version: Json, at: { readonly index: number; readonly single: boolean }): FieldError[] {
  const schema = valueAt(version, "schema", "openAPIV3Schema");
  const own = `spec.versions[${at.index}].schema.openAPIV3Schema`;
  if (!isJsonObject(schema)) return [fieldErrors.required(own)];
  const field = at.single ? "spec.validation.openAPIV3Schema" : own;
  const errors = structuralErrors(schema, field);
  if (schema.type === undefined) errors.push(fieldErrors.required(`${field}.type`, "must not be empty at the root"));
  return errors;
}

function structuralErrors(schema: JsonObject, field: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const [key, child] of Object.entries(isJsonObject(schema.properties) ? schema.properties : {})) {
    if (!isJsonObject(child)) continue;
    const at = `${field}.properties[${key}]`;
    errors.push(...typeErrors(child, at, "must not be empty for specified object fields"));
  }
  if (isJsonObject(schema.items))
    errors.push(...typeErrors(schema.items, `${field}.items`, "must not be empty for specified array items"));
  if (isJsonObject(schema.additionalProperties)) {
    errors.push(
      ...typeErrors(
        schema.additionalProperties,
        `${field}.additionalProperties`,
        "must not be empty for specified object fields",
      ),
    );
  }
  return errors;
}

function typeErrors(schema: JsonObject, field: string, detail: string): FieldError[] {
  const free = schema["x-kubernetes-preserve-unknown-fields"] === true || schema["x-kubernetes-int-or-string"] === true;
  const errors = schema.type === undefined && !free ? [fieldErrors.required(`${field}.type`, detail)] : [];
  return [...errors, ...structuralErrors(schema, field)];
}

/** A new CustomResourceDefinition has no conditions yet; an update keeps the status, and remembers each storage version. */
function prepareCrd(object: JsonObject, { live }: StrategyContext): JsonObject {
  if (live === undefined) {
    const storedVersions = valueAt(object, "status", "storedVersions") ?? null;
    return { ...object, status: { conditions: null, acceptedNames: { plural: "", kind: "" }, storedVersions } };
  }
  const storage = listAt(object, "spec", "versions").find((version) => valueAt(version, "storage") === true);
  const name = stringAt(storage, "name");
  const stored = listAt(live, "status", "storedVersions");
  if (name === undefined || stored.includes(name)) return object;
  return {
    ...object,
    status: { ...(isJsonObject(object.status) ? object.status : {}), storedVersions: [...stored, name] },
  };
}

const selectorStays = immutableAt("spec.selector");
const podTemplate: Strategy = { validate: both(workloadErrors, selectorStays) };

function podErrors(object: JsonObject): FieldError[] {
  return containerErrors(object.spec, "spec");
}

const roleRefStays: Strategy = {
  validate: (object, { live }) => {
    if (live === undefined || deepEqual(object.roleRef, live.roleRef)) return [];
    return [fieldErrors.invalid("roleRef", object.roleRef ?? null, "cannot change roleRef")];
  },
};

/** By `group/plural`. */
export const strategies: Readonly<Record<string, Strategy>> = {
  "/namespaces": { prepare: prepareNamespace },
  "/configmaps": { validate: configMapErrors },
  "/secrets": { validate: secretErrors },
  "/services": { prepare: allocateService, validate: serviceErrors },
  "/pods": { validate: podErrors },
  "apps/deployments": podTemplate,
  "apps/daemonsets": podTemplate,
  "apps/replicasets": podTemplate,
  "apps/statefulsets": podTemplate,
  "batch/jobs": { prepare: prepareJob, validate: immutableAt("spec.selector", "spec.template", "spec.completionMode") },
  "rbac.authorization.k8s.io/rolebindings": roleRefStays,
  "rbac.authorization.k8s.io/clusterrolebindings": roleRefStays,
  "storage.k8s.io/storageclasses": {
    validate: immutableAt("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"),
  },
  "apiextensions.k8s.io/customresourcedefinitions": { prepare: prepareCrd, validate: crdErrors },
};

/** A Job selects its Pods by its own uid, which the server generates. */
function prepareJob(object: JsonObject, { live }: StrategyContext): JsonObject {
  const spec = isJsonObject(object.spec) ? object.spec : {};
  if (spec.manualSelector === true) return object;
  const uid = stringAt(object, "metadata", "uid") ?? "";
  if (live !== undefined) {
    return { ...object, spec: { ...spec, selector: valueAt(live, "spec", "selector") ?? {} } };
  }
  const name = stringAt(object, "metadata", "name") ?? "";
  const template = isJsonObject(spec.template) ? spec.template : {};
  const metadata = isJsonObject(template.metadata) ? template.metadata : {};
  const labels = {
    ...(isJsonObject(metadata.labels) ? metadata.labels : {}),
    "batch.kubernetes.io/controller-uid": uid,
    "batch.kubernetes.io/job-name": name,
    "controller-uid": uid,
    "job-name": name,
  };
  const selector = { matchLabels: { "batch.kubernetes.io/controller-uid": uid } };
  return { ...object, spec: { ...spec, selector, template: { ...template, metadata: { ...metadata, labels } } } };
}

export function strategyOf(kind: Kind): Strategy {
  return strategies[`${kind.group}/${kind.plural}`] ?? {};
}
