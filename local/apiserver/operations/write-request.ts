import type { FieldFilter, FieldsContext } from "#apiserver/apply/managed-fields.ts";
import { fieldSet } from "#apiserver/apply/path-set.ts";
import { builtinType } from "#apiserver/apply/schema.ts";
import type { User } from "#apiserver/authorization/user.ts";
import type { Cluster } from "#apiserver/cluster.ts";
import { type JsonObject, stringifyJson } from "#apiserver/json.ts";
import { toCustomObject } from "#apiserver/kinds/custom-kind.ts";
import { DecodeError, toGoObject } from "#apiserver/kinds/go-object.ts";
import { apiVersionOf, apiVersionParts, hasSubresource, inVersion, type Kind } from "#apiserver/kinds/kind.ts";
import { stringAt, valueAt } from "#apiserver/object-fields.ts";
import { withMetadata } from "#apiserver/operations/object-meta.ts";
import type { FieldValidation } from "#apiserver/operations/request-body.ts";
import {
  badRequest,
  type FieldError,
  fieldErrors,
  internalError,
  invalid,
  type StatusError,
} from "#apiserver/status-error.ts";

/** A request that may change an object. */
export interface WriteRequest {
  readonly cluster: Cluster;
  /** Undefined for the controllers of the cluster. */
  readonly user?: User;
  readonly kind: Kind;
  /** Empty for cluster-scoped kinds. */
  readonly namespace: string;
  /** Empty for a collection. */
  readonly name: string;
  /** Empty for the object itself. */
  readonly subresource: string;
  readonly manager: string;
  readonly force: boolean;
  readonly dryRun: boolean;
  readonly fieldValidation: FieldValidation;
  readonly contentType: string | undefined;
  readonly body: string;
  /** Collects the texts of Warning headers. */
  readonly warnings: string[];
}

export interface Written {
  readonly status: number;
  readonly object: JsonObject;
}

const maxManagerBytes = 128;

function managerFromUserAgent(userAgent: string): string {
  const printable = [...(userAgent.split("/")[0] ?? "")].filter((char) => char >= " " && char !== "\u007f").join("");
  return printable === "" ? "unknown" : printable.slice(0, maxManagerBytes);
}

export interface WriteOptions {
  readonly manager: string;
  readonly force: boolean;
  readonly dryRun: boolean;
  readonly fieldValidation: FieldValidation;
}

const validations = ["", "Ignore", "Strict", "Warn"];

/** Reads and checks the query of a write. `kind` names the options in messages. @throws StatusError 422. */
export function readWriteOptions(
  query: URLSearchParams,
  request: {
    readonly kind: "CreateOptions" | "UpdateOptions" | "PatchOptions";
    readonly apply: boolean;
    readonly userAgent: string;
  },
): WriteOptions {
  const errors: FieldError[] = [];
  const given = query.get("fieldManager") ?? "";
  const force = query.get("force");
  const validation = query.get("fieldValidation") ?? "";
  if (request.kind === "PatchOptions") {
    if (request.apply && given === "") errors.push(fieldErrors.required("fieldManager", "is required for apply patch"));
    if (!request.apply && force !== null)
      errors.push(fieldErrors.forbidden("force", "may not be specified for non-apply patch"));
  }
  if (Buffer.byteLength(given) > maxManagerBytes) errors.push(fieldErrors.tooLong("fieldManager", maxManagerBytes));
  errors.push(...dryRunErrors(query));
  if (!validations.includes(validation))
    errors.push(fieldErrors.unsupported("fieldValidation", validation, validations));
  if (errors.length > 0) throw invalid({ group: "meta.k8s.io", kind: request.kind, name: "" }, errors);
  return {
    manager: given === "" ? managerFromUserAgent(request.userAgent) : given,
    force: force === "true",
    dryRun: query.getAll("dryRun").includes("All"),
    fieldValidation: validation === "Ignore" || validation === "Strict" ? validation : "Warn",
  };
}

export function dryRunErrors(query: URLSearchParams): FieldError[] {
  const values = query.getAll("dryRun").filter((value) => value !== "");
  return values.every((value) => value === "All") ? [] : [fieldErrors.unsupported("dryRun", values, ["All"])];
}

/**
 * The origin of an object to decode: a client, the result of an apply (it has no unknown fields), or the result of a
 * patch.
 */
export type ObjectSource = "client" | "configuration" | "patch";

/** The error for the result of a patch that cannot be decoded. */
export function unfitPatch(value: JsonObject, why: string): StatusError {
  return invalid({ group: "", kind: "", name: "" }, [fieldErrors.invalid("patch", stringifyJson(value), why)]);
}

/**
 * Reports the problems of a strict decoder as an error, as warnings or not at all, as the request asks. @throws
 * DecodeError.
 */
export function reportStrict(request: WriteRequest, problems: readonly string[]): void {
  if (problems.length === 0 || request.fieldValidation === "Ignore") return;
  if (request.fieldValidation === "Warn") {
    request.warnings.push(...problems);
    return;
  }
  throw new DecodeError(`strict decoding error: ${problems.join(", ")}`);
}

/** The error for the result of an apply that cannot be decoded. */
function unfitMerge(value: JsonObject, why: string): StatusError {
  const type = objectType(value);
  const cause = why.startsWith("illegal base64") ? `error decoding from json: ${why}` : why;
  const shown = shownObject(value);
  return internalError(
    `failed to convert new object (${shown}) to proper version: unable to convert unstructured object to ${type}: ${cause}`,
  );
}

/** An object as messages show it: `shop/web; apps/v1, Kind=Deployment`. */
export function shownObject(object: JsonObject): string {
  const place = `${stringAt(object, "metadata", "namespace") ?? ""}/${stringAt(object, "metadata", "name") ?? ""}`;
  return `${place}; ${objectType(object)}`;
}

function objectType({ apiVersion, kind }: JsonObject): string {
  const version = String(apiVersion);
  return `${version.includes("/") ? version : `/${version}`}, Kind=${String(kind)}`;
}

/** The error for a body that cannot be decoded. */
export function unfitObject({ kind, version }: Kind, why: string): StatusError {
  return badRequest(`${kind} in version ${JSON.stringify(version)} cannot be handled as a ${kind}: ${why}`);
}

/** An object as the server stores it. @throws StatusError 400, or 422 for a patch. */
export function toServerObject(request: WriteRequest, value: JsonObject, from: ObjectSource): JsonObject {
  const { kind } = request;
  const unknown: string[] = [];
  const shaped = { ...value, apiVersion: apiVersionOf(kind), kind: kind.kind };
  try {
    const object =
      kind.custom === undefined
        ? toGoObject(() => builtinType(typeNameOf(kind)), shaped, { unknown, defaults: "fill" })
        : toCustomObject(kind.custom, shaped, { prune: from !== "configuration", unknown });
    reportStrict(
      request,
      unknown.map((path) => `unknown field ${JSON.stringify(path)}`),
    );
    return keepReset(value, object);
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    if (from === "patch") throw unfitPatch(value, error.message);
    throw from === "configuration" ? unfitMerge(value, error.message) : unfitObject(kind, error.message);
  }
}

/** An empty list of managedFields resets all managers, so the encoder must not drop it as empty. */
function keepReset(given: JsonObject, object: JsonObject): JsonObject {
  const managedFields = valueAt(given, "metadata", "managedFields");
  const reset = Array.isArray(managedFields) && managedFields.length === 0;
  return reset ? withMetadata(object, { managedFields }) : object;
}

function typeNameOf(kind: Kind): string {
  const type = kind.typeIn(kind.version)?.();
  return type?.kind === "map" ? type.name : "";
}

const zeroObjects = new Map<string, JsonObject>();

/** The object as Go encodes an empty struct; an empty object for custom resources. */
function zeroObject(kind: Kind): JsonObject {
  if (kind.custom !== undefined) return {};
  const name = typeNameOf(kind);
  const known = zeroObjects.get(name);
  if (known !== undefined) return known;
  const zero = toGoObject(() => builtinType(name), {}, { defaults: "leave" });
  zeroObjects.set(name, zero);
  return zero;
}

const statusOnly = fieldSet(["status"]);
const specOnly = fieldSet(["spec"], ["metadata", "labels"]);

function filterFor(kind: Kind, subresource: string): FieldFilter {
  if (subresource === "status") return kind.custom === undefined ? { exclude: specOnly } : { only: statusOnly };
  if (subresource === "finalize" || hasSubresource(kind, "status")) return { exclude: statusOnly };
  return {};
}

/** The input of managedFields tracking for a request. */
export function fieldsContext(request: WriteRequest): FieldsContext {
  const { kind } = request;
  return {
    apiVersion: apiVersionOf(kind),
    typeIn: (apiVersion) => {
      const { group, version } = apiVersionParts(apiVersion);
      return group === kind.group ? kind.typeIn(version) : undefined;
    },
    inVersion: (object, apiVersion) => inVersion(kind, object, apiVersion),
    manager: request.manager,
    subresource: request.subresource,
    filter: filterFor(kind, request.subresource),
    now: request.cluster.now(),
    zero: zeroObject(kind),
  };
}
