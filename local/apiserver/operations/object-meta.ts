import { isJsonObject, type Json, type JsonObject } from "#apiserver/json.ts";
import type { Kind } from "#apiserver/kinds/kind.ts";
import { annotationsOf, labelsOf, listAt, stringAt } from "#apiserver/object-fields.ts";
import { labelValueProblem } from "#apiserver/operations/selectors.ts";
import { type FieldError, fieldErrors, type Subject } from "#apiserver/status-error.ts";

export function metadataOf(object: JsonObject): JsonObject {
  return isJsonObject(object.metadata) ? object.metadata : {};
}

/** The object with changed metadata. A change to undefined removes the field. */
export function withMetadata(object: JsonObject, changes: JsonObject): JsonObject {
  const metadata: Record<string, Json> = {};
  for (const [key, value] of Object.entries({ ...metadataOf(object), ...changes })) {
    if (value !== undefined) metadata[key] = value;
  }
  return { ...object, metadata };
}

export function nameOf(object: JsonObject): string {
  return stringAt(object, "metadata", "name") ?? "";
}

/** The name of an object in messages about its resource: it contains the plural. */
export function resourceSubject(kind: Kind, name: string): Subject {
  return { group: kind.group, kind: kind.plural, name };
}

/** The name of an object in messages about its content: it contains the kind. */
export function kindSubject(kind: Kind, name: string): Subject {
  return { group: kind.group, kind: kind.kind, name };
}

const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const subdomainMessage =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const label = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const labelMessage =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const dns1035Message =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const ownerless = ["Event"];
const qualifiedName = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;
const qualifiedNameMessage =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

type NameRule = (name: string) => string | undefined;

export function subdomainRule(name: string): string | undefined {
  if (name.length > 253) return "must be no more than 253 characters";
  return subdomain.test(name) ? undefined : subdomainMessage;
}

export function labelRule(name: string): string | undefined {
  if (name.includes(".")) return "must not contain dots";
  if (name.length > 63) return "must be no more than 63 characters";
  return label.test(name) ? undefined : labelMessage;
}

/** The rule for a label that must begin with a letter. */
export function dns1035Rule(name: string): string | undefined {
  if (name.length > 63) return "must be no more than 63 characters";
  return /^[a-z]([-a-z0-9]*[a-z0-9])?$/.test(name) ? undefined : dns1035Message;
}

export function pathSegmentRule(name: string): string | undefined {
  if (name === "." || name === "..") return `may not be '${name}'`;
  for (const forbidden of ["/", "%"]) if (name.includes(forbidden)) return `may not contain '${forbidden}'`;
  return undefined;
}

const nameRules: Readonly<Record<string, NameRule>> = {
  "/namespaces": labelRule,
  "/services": labelRule,
  "apiregistration.k8s.io/apiservices": pathSegmentRule,
  "rbac.authorization.k8s.io/roles": pathSegmentRule,
  "rbac.authorization.k8s.io/rolebindings": pathSegmentRule,
  "rbac.authorization.k8s.io/clusterroles": pathSegmentRule,
  "rbac.authorization.k8s.io/clusterrolebindings": pathSegmentRule,
};

function nameErrors(kind: Kind, metadata: JsonObject): FieldError[] {
  const name = typeof metadata.name === "string" ? metadata.name : "";
  if (name === "") return [fieldErrors.required("metadata.name", "name or generateName is required")];
  const problem = (nameRules[`${kind.group}/${kind.plural}`] ?? subdomainRule)(name);
  return problem === undefined ? [] : [fieldErrors.invalid("metadata.name", name, problem)];
}

/** The error of a label key, annotation key or finalizer, if any. */
export function labelKeyProblem(key: string): string | undefined {
  const parts = key.split("/");
  if (parts.length > 2) {
    return "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
  }
  const [prefix, name] = parts.length === 2 ? [parts[0] ?? "", parts[1] ?? ""] : [undefined, parts[0] ?? ""];
  if (prefix === "") return "prefix part must be non-empty";
  if (prefix !== undefined && subdomainRule(prefix) !== undefined) return `prefix part ${subdomainRule(prefix)}`;
  if (name === "") return "name part must be non-empty";
  if (Buffer.byteLength(name) > 63) return "name part must be no more than 63 bytes";
  return qualifiedName.test(name) ? undefined : qualifiedNameMessage;
}

const maxAnnotationBytes = 256 * 1024;

function annotationErrors(object: JsonObject): FieldError[] {
  const errors: FieldError[] = [];
  let bytes = 0;
  for (const [key, value] of Object.entries(annotationsOf(object))) {
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value);
    const problem = labelKeyProblem(key.toLowerCase());
    if (problem !== undefined) errors.push(fieldErrors.invalid("metadata.annotations", key, problem));
  }
  if (bytes > maxAnnotationBytes) errors.push(fieldErrors.tooLong("metadata.annotations", maxAnnotationBytes));
  return errors;
}

/** The errors of labels at a path, which may be in a template. */
export function labelErrors(labels: Readonly<Record<string, string>>, field: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const [key, value] of Object.entries(labels)) {
    const keyProblem = labelKeyProblem(key);
    if (keyProblem !== undefined) errors.push(fieldErrors.invalid(field, key, keyProblem));
    const valueProblem = labelValueProblem(value);
    if (valueProblem !== undefined) errors.push(fieldErrors.invalid(field, value, valueProblem));
  }
  return errors;
}

const standardFinalizers = new Set(["kubernetes", "orphan", "foregroundDeletion"]);

/** In these groups any qualified name is a valid finalizer. Servers other than the core serve them. */
const freeFinalizers = ["apiextensions.k8s.io", "apiregistration.k8s.io"];

function finalizerErrors(kind: Kind, object: JsonObject): FieldError[] {
  const errors: FieldError[] = [];
  const isFree = kind.custom !== undefined || freeFinalizers.includes(kind.group);
  for (const [index, finalizer] of listAt(object, "metadata", "finalizers").entries()) {
    const name = String(finalizer);
    const field = isFree ? "metadata.finalizers" : `metadata.finalizers[${index}]`;
    const problem = labelKeyProblem(name);
    if (problem !== undefined) errors.push(fieldErrors.invalid(field, name, problem));
    else if (!isFree && !name.includes("/") && !standardFinalizers.has(name)) {
      errors.push(
        fieldErrors.invalid(field, name, "name is neither a standard finalizer name nor is it fully qualified"),
      );
    }
  }
  return errors;
}

function ownerErrors(object: JsonObject): FieldError[] {
  const errors: FieldError[] = [];
  const owners = listAt(object, "metadata", "ownerReferences").filter(isJsonObject);
  const field = "metadata.ownerReferences";
  for (const owner of owners) {
    const apiVersion = typeof owner.apiVersion === "string" ? owner.apiVersion : "";
    if (apiVersion === "" || apiVersion.split("/").length > 2) {
      errors.push(fieldErrors.invalid(`${field}.apiVersion`, apiVersion, "version must not be empty"));
    }
    for (const key of ["kind", "name", "uid"]) {
      if ((owner[key] ?? "") === "") errors.push(fieldErrors.invalid(`${field}.${key}`, "", "must not be empty"));
    }
    if (apiVersion === "v1" && ownerless.includes(String(owner.kind))) {
      errors.push(
        fieldErrors.invalid(field, owner, `/v1, Kind=${String(owner.kind)} is disallowed from being an owner`),
      );
    }
  }
  const [first, second] = owners
    .filter((owner) => owner.controller === true)
    .map((owner) => `${String(owner.kind)}/${String(owner.name)}`);
  if (second !== undefined) {
    const detail = `Only one reference can have Controller set to true. Found "true" in references for ${first} and ${second}`;
    errors.push(fieldErrors.invalid(field, owners, detail));
  }
  return errors;
}

/** Warnings about new finalizers of a custom resource whose names have no domain and may collide with others. */
export function finalizerWarnings(object: JsonObject, live: JsonObject | undefined): string[] {
  const known = listAt(live, "metadata", "finalizers");
  return listAt(object, "metadata", "finalizers")
    .map(String)
    .filter((name) => !known.includes(name) && !name.includes("/") && !standardFinalizers.has(name))
    .map(
      (name) =>
        `metadata.finalizers: ${JSON.stringify(name)}: prefer a domain-qualified finalizer name ${name.includes(".") ? "including a path (/) " : ""}to avoid accidental conflicts with other finalizer writers`,
    );
}

/** The errors of maps and owners, which the server checks on every write. */
function sharedErrors(object: JsonObject): FieldError[] {
  return [...labelErrors(labelsOf(object), "metadata.labels"), ...annotationErrors(object), ...ownerErrors(object)];
}

/** The errors in the metadata of a new or changed object. */
export function metadataErrors(kind: Kind, object: JsonObject): FieldError[] {
  return [...nameErrors(kind, metadataOf(object)), ...sharedErrors(object), ...finalizerErrors(kind, object)];
}

/** The errors of an update's metadata. The real server runs some checks several times, so errors repeat. */
export function metadataUpdateErrors(live: JsonObject, next: JsonObject): FieldError[] {
  const before = metadataOf(live);
  const after = metadataOf(next);
  const errors: FieldError[] = [];
  for (const key of ["uid", "deletionTimestamp"] as const) {
    if (after[key] === before[key]) continue;
    const error = fieldErrors.invalid(`metadata.${key}`, after[key] ?? null, "field is immutable");
    errors.push(error, error);
  }
  const repeated = sharedErrors(next);
  errors.push(...repeated, ...repeated, ...repeated);
  if (before.deletionTimestamp === undefined) return errors;
  const known = listAt(live, "metadata", "finalizers");
  const added = listAt(next, "metadata", "finalizers").filter((finalizer) => !known.includes(finalizer));
  if (added.length === 0) return errors;
  const list = added.map((finalizer) => JSON.stringify(finalizer)).join(", ");
  const detail = `no new finalizers can be added if the object is being deleted, found new finalizers []string{${list}}`;
  const forbidden = fieldErrors.forbidden("metadata.finalizers", detail);
  return [...errors, forbidden, forbidden];
}
