import { deepEqual } from "#local/cluster/deep-equal.ts";
import { apiServiceStrategy } from "#local/cluster/kinds/api-service-strategy.ts";
import { crdErrors, prepareCrd } from "#local/cluster/kinds/crd-strategy.ts";
import type { Kind } from "#local/cluster/kinds/kinds.ts";
import { rbacStrategies } from "#local/cluster/kinds/rbac-strategy.ts";
import { allocateService, serviceErrors, serviceWarnings } from "#local/cluster/kinds/service-strategy.ts";
import { all, immutable, immutableAt, type Strategy, type StrategyContext } from "#local/cluster/kinds/strategy.ts";
import { workloadStrategies } from "#local/cluster/kinds/workload-strategy.ts";
import { withMetadata } from "#local/cluster/operations/object-meta.ts";
import { type FieldError, fieldErrors } from "#local/cluster/status-error.ts";
import { isJsonObject, type JsonObject } from "#shared/domain/json.ts";
import { listAt, stringAt, valueAt } from "#shared/domain/kube-object.ts";

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

function keyErrors(object: JsonObject, name: string): FieldError[] {
  return members(object, name).flatMap(([key]) => {
    const problem = keyProblem(key);
    return problem === undefined ? [] : [fieldErrors.invalid(`${name}[${key}]`, key, problem)];
  });
}

function configMapErrors(object: JsonObject): FieldError[] {
  const data = members(object, "data");
  const binary = new Map(members(object, "binaryData"));
  const errors = [...keyErrors(object, "data"), ...keyErrors(object, "binaryData")];
  for (const [key] of data) {
    if (binary.has(key))
      errors.push(fieldErrors.invalid(`data[${key}]`, key, "duplicate of key present in binaryData"));
  }
  let bytes = 0;
  for (const [, value] of data) bytes += Buffer.byteLength(value);
  for (const value of binary.values()) bytes += decodedBytes(value);
  // The path of the whole object is empty, which Go prints as a list.
  if (bytes > maxDataBytes) errors.push(fieldErrors.tooLong("[]", maxDataBytes));
  return errors;
}

const requiredKeys: Readonly<Record<string, readonly string[]>> = {
  "kubernetes.io/tls": ["tls.crt", "tls.key"],
  "kubernetes.io/dockerconfigjson": [".dockerconfigjson"],
  "kubernetes.io/dockercfg": [".dockercfg"],
  "kubernetes.io/ssh-auth": ["ssh-privatekey"],
};

/** One of them is enough. */
const basicAuthKeys = ["username", "password"];

function secretErrors(object: JsonObject): FieldError[] {
  const data = new Map(members(object, "data"));
  const errors = keyErrors(object, "data");
  for (const key of requiredKeys[String(object.type)] ?? []) {
    if (!data.has(key)) errors.push(fieldErrors.required(`data[${key}]`));
  }
  if (object.type === "kubernetes.io/basic-auth" && !basicAuthKeys.some((key) => data.has(key))) {
    errors.push(...basicAuthKeys.map((key) => fieldErrors.required(`data[${key}]`)));
  }
  let bytes = 0;
  for (const value of data.values()) bytes += decodedBytes(value);
  if (bytes > maxDataBytes) errors.push(fieldErrors.tooLong("data", maxDataBytes));
  return errors;
}

function immutableData(object: JsonObject, { live }: StrategyContext): FieldError[] {
  if (live === undefined) return [];
  const errors = live.type === object.type ? [] : [immutable("type", object.type)];
  if (live.immutable !== true) return errors;
  const detail = "field is immutable when `immutable` is set";
  if (object.immutable !== true) errors.push(fieldErrors.forbidden("immutable", detail));
  for (const name of ["data", "binaryData"]) {
    if (!deepEqual(object[name], live[name])) errors.push(fieldErrors.forbidden(name, detail));
  }
  return errors;
}

/** Storage in use is protected until a controller lets it go (admission plugin StorageObjectInUseProtection). */
function protect(finalizer: string): NonNullable<Strategy["prepare"]> {
  return (object, { live }) => {
    const finalizers = listAt(object, "metadata", "finalizers");
    if (live !== undefined || finalizers.includes(finalizer)) return object;
    return withMetadata(object, { finalizers: [...finalizers, finalizer] });
  };
}

function claimChanges(object: JsonObject, { live }: StrategyContext): FieldError[] {
  if (live === undefined) return [];
  const bound = stringAt(live, "status", "phase") === "Bound";
  const fixed = ({ spec }: JsonObject) => {
    const { resources, volumeAttributesClassName, volumeName: _bound, ...rest } = isJsonObject(spec) ? spec : {};
    return bound ? rest : { ...rest, resources, volumeAttributesClassName };
  };
  if (deepEqual(fixed(object), fixed(live))) return [];
  const detail =
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
  return [fieldErrors.forbidden("spec", detail)];
}

function budgetErrors(object: JsonObject): FieldError[] {
  const { minAvailable, maxUnavailable, selector } = isJsonObject(object.spec) ? object.spec : {};
  if (minAvailable === undefined || maxUnavailable === undefined) return [];
  const printed = {
    MinAvailable: minAvailable,
    Selector: selector,
    MaxUnavailable: maxUnavailable,
    UnhealthyPodEvictionPolicy: null,
  };
  return [fieldErrors.invalid("spec", printed, "minAvailable and maxUnavailable cannot be both set")];
}

function ingressErrors(object: JsonObject): FieldError[] {
  const spec = valueAt(object, "spec");
  if (valueAt(spec, "defaultBackend") !== undefined || listAt(spec, "rules").length > 0) return [];
  return [fieldErrors.invalid("spec", null, "either `defaultBackend` or `rules` must be specified")];
}

function scheduleErrors(object: JsonObject): FieldError[] {
  const schedule = stringAt(object, "spec", "schedule") ?? "";
  const fields = schedule.split(/\s+/).filter((field) => field !== "");
  if (fields.length === 0) return [fieldErrors.required("spec.schedule")];
  if (schedule.startsWith("@") || fields.length === 5) return [];
  return [
    fieldErrors.invalid(
      "spec.schedule",
      schedule,
      `expected exactly 5 fields, found ${fields.length}: [${fields.join(" ")}]`,
    ),
  ];
}

/** By `group/plural`. */
const strategies: Readonly<Record<string, Strategy>> = {
  ...workloadStrategies,
  ...rbacStrategies,
  "/namespaces": { prepare: prepareNamespace },
  "/configmaps": { validate: all(immutableData, configMapErrors) },
  "/secrets": { validate: all(immutableData, secretErrors) },
  "/services": { prepare: allocateService, validate: serviceErrors, warn: serviceWarnings },
  "/persistentvolumeclaims": { prepare: protect("kubernetes.io/pvc-protection"), validate: claimChanges },
  "/persistentvolumes": { prepare: protect("kubernetes.io/pv-protection") },
  "batch/cronjobs": { validate: scheduleErrors },
  "policy/poddisruptionbudgets": { validate: budgetErrors },
  "networking.k8s.io/ingresses": { validate: ingressErrors },
  "storage.k8s.io/storageclasses": {
    validate: immutableAt("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"),
  },
  "apiregistration.k8s.io/apiservices": apiServiceStrategy,
  "apiextensions.k8s.io/customresourcedefinitions": { prepare: prepareCrd, validate: crdErrors },
};

export function strategyOf(kind: Kind): Strategy {
  return strategies[`${kind.group}/${kind.plural}`] ?? {};
}
