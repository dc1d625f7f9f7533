import { randomInt, randomUUID } from "node:crypto";
import { type AdmissionRequest, askWebhooks, rewriteByWebhooks } from "#apiserver/admission.ts";
import {
  isOwned,
  managedFieldsList,
  sameIgnoringTimes,
  trackUpdate,
  withManagedFields,
} from "#apiserver/apply/managed-fields.ts";
import { checkGrants } from "#apiserver/authorization/role-grants.ts";
import { crdResource } from "#apiserver/cluster.ts";
import { objectKey } from "#apiserver/cluster-store.ts";
import { deepEqual } from "#apiserver/deep-equal.ts";
import { isJsonObject, type Json, type JsonObject } from "#apiserver/json.ts";
import { storedKind } from "#apiserver/kinds/builtin-kinds.ts";
import { customErrors } from "#apiserver/kinds/custom-validation.ts";
import { DecodeError } from "#apiserver/kinds/go-object.ts";
import { apiVersionOf, goGroup, hasSubresource, inVersion, type Kind, resourceKey } from "#apiserver/kinds/kind.ts";
import { strategyOf } from "#apiserver/kinds/strategies.ts";
import { annotationsOf, stringAt, valueAt } from "#apiserver/object-fields.ts";
import {
  finalizerWarnings,
  kindSubject,
  metadataErrors,
  metadataOf,
  metadataUpdateErrors,
  nameOf,
  resourceSubject,
  withMetadata,
} from "#apiserver/operations/object-meta.ts";
import { parseObjectBody } from "#apiserver/operations/request-body.ts";
import {
  fieldsContext,
  reportStrict,
  toServerObject,
  unfitObject,
  type WriteRequest,
  type Written,
} from "#apiserver/operations/write-request.ts";
import {
  alreadyExists,
  badRequest,
  conflict,
  fieldErrors,
  forbidden,
  internalError,
  invalid,
  notFound,
  type StatusError,
  staleVersion,
} from "#apiserver/status-error.ts";

export function resourceOf(kind: Kind): string {
  return resourceKey(kind.group, kind.plural);
}

/** The stored object that a write changes, if it exists. */
export function liveOf(request: WriteRequest): JsonObject | undefined {
  return request.cluster.store.get(resourceOf(request.kind), objectKey(request.namespace, request.name));
}

/** The stored object in the version of the request. @throws StatusError 404. */
export function requireLive(request: WriteRequest): JsonObject {
  const live = liveOf(request);
  if (live !== undefined) return live;
  throw notFound(resourceSubject(request.kind, request.name));
}

/** The object in the body of a POST or PUT. @throws StatusError 400 or 415. */
export function parseBody(request: WriteRequest): JsonObject {
  const { kind } = request;
  const { value, duplicates } = parseObjectBody(request.body, request.contentType, kind.kind);
  const body = isJsonObject(value) ? value : {};
  checkKind(request, body);
  try {
    reportStrict(
      request,
      duplicates.map((path) => `duplicate field ${JSON.stringify(path)}`),
    );
  } catch (error) {
    throw error instanceof DecodeError ? unfitObject(kind, error.message) : error;
  }
  return body;
}

const scheme = "k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30";

function checkKind(request: WriteRequest, body: JsonObject): void {
  const { kind, cluster } = request;
  const desired = apiVersionOf(kind);
  const apiVersion = typeof body.apiVersion === "string" && body.apiVersion !== "" ? body.apiVersion : desired;
  const given = typeof body.kind === "string" && body.kind !== "" ? body.kind : kind.kind;
  if (apiVersion === desired && given === kind.kind) return;
  if (kind.custom !== undefined) {
    if (given !== kind.kind)
      throw badRequest(`the kind in the data (${given}) does not match the expected kind (${kind.kind})`);
    throw otherVersion(apiVersion, desired);
  }
  const version = apiVersion.slice(apiVersion.indexOf("/") + 1);
  const known = cluster.kindNamed(apiVersion, given);
  if (known !== undefined && storedKind(known) === storedKind(kind)) throw otherVersion(apiVersion, desired);
  const why =
    known === undefined
      ? `no kind ${JSON.stringify(given)} is registered for version ${JSON.stringify(apiVersion)} in scheme ${JSON.stringify(scheme)}`
      : `converting (${version}.${given}) to (${goGroup(kind.group)}.${kind.kind}): unknown conversion`;
  const shown = known === undefined ? apiVersion.split("/").at(-1) : version;
  const named = apiVersion.includes("/") && known === undefined ? kind.version : shown;
  throw badRequest(`${given} in version ${JSON.stringify(named)} cannot be handled as a ${kind.kind}: ${why}`);
}

function otherVersion(given: string, desired: string): StatusError {
  return badRequest(`the API version in the data (${given}) does not match the expected API version (${desired})`);
}

/** Sets the namespace of the path on an object. @throws StatusError 400 where the object names another namespace. */
export function checkNamespace(request: WriteRequest, object: JsonObject): JsonObject {
  const given = stringAt(object, "metadata", "namespace") ?? "";
  if (!request.kind.namespaced) return withMetadata(object, { namespace: undefined });
  if (given !== "" && given !== request.namespace) {
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
  }
  return withMetadata(object, { namespace: request.namespace });
}

function admitToNamespace(request: WriteRequest, name: string): void {
  if (!request.kind.namespaced) return;
  const { cluster, namespace } = request;
  if (cluster.namespace(namespace) === undefined) throw notFound({ group: "", kind: "namespaces", name: namespace });
  if (!cluster.isTerminating(namespace)) return;
  throw forbidden(
    resourceSubject(request.kind, name),
    `unable to create new content in namespace ${namespace} because it is being terminated`,
    [
      {
        reason: "NamespaceTerminating",
        message: `namespace ${namespace} is being terminated`,
        field: "metadata.namespace",
      },
    ],
  );
}

/** A definition that is being deleted accepts no new objects. */
function admitToDefinition({ cluster, kind }: WriteRequest, name: string): void {
  if (kind.custom === undefined) return;
  const definition = cluster.store.get(crdResource, objectKey("", kind.custom.crdName));
  if (valueAt(definition, "metadata", "deletionTimestamp") === undefined) return;
  const why = "create not allowed while custom resource definition is terminating";
  throw forbidden(resourceSubject(kind, name), why);
}

const generatedCharacters = "bcdfghjklmnpqrstvwxz2456789";

export function generatedSuffix(): string {
  return Array.from({ length: 5 }, () => generatedCharacters[randomInt(generatedCharacters.length)]).join("");
}

function validate(request: WriteRequest, object: JsonObject, live: JsonObject | undefined): void {
  const { kind, cluster } = request;
  const errors = [
    ...(live === undefined ? [] : metadataUpdateErrors(live, object)),
    ...metadataErrors(kind, object),
    ...(kind.custom === undefined ? [] : customErrors(kind.custom.schema, object)),
    ...(strategyOf(kind).validate?.(object, { cluster, live }) ?? []),
  ];
  if (errors.length > 0) throw invalid(kindSubject(kind, nameOf(object)), errors);
  if (kind.custom !== undefined) request.warnings.push(...finalizerWarnings(object, live));
  request.warnings.push(...(strategyOf(kind).warn?.(object, { cluster, live }) ?? []));
}

function admissionOf(request: WriteRequest, operation: AdmissionRequest["operation"]): AdmissionRequest {
  const { kind, namespace, subresource, dryRun } = request;
  return { webhooks: request.cluster.faults.webhooks, operation, kind, namespace, subresource, dryRun };
}

/** The object after the rewriting webhooks. No manager owns the fields that they set. */
function rewritten(request: WriteRequest, operation: AdmissionRequest["operation"], object: JsonObject): JsonObject {
  const next = rewriteByWebhooks(admissionOf(request, operation), object);
  return next === object
    ? object
    : toServerObject({ ...request, fieldValidation: "Ignore", warnings: [] }, next, "client");
}

/** POST to a collection. */
export function createObject(request: WriteRequest): Written {
  const body = parseBody(request);
  const decoded = checkNamespace(request, toServerObject(request, body, "client"));
  if (stringAt(decoded, "metadata", "resourceVersion") !== undefined) {
    throw internalError("resourceVersion should not be set on objects to be created");
  }
  return insertNew(request, decoded);
}

function insertNew(request: WriteRequest, decoded: JsonObject): Written {
  const managedFields = trackUpdate(undefined, decoded, fieldsContext(request));
  return insert(request, withManagedFields(decoded, managedFields));
}

/** Stores a decoded object with known managers. @throws StatusError 403, 404, 409 or 422. */
export function insert(asked: WriteRequest, object: JsonObject): Written {
  const request = { ...asked, kind: storedKind(asked.kind) };
  const { cluster, kind } = request;
  const decoded = inVersion(kind, object, apiVersionOf(kind));
  const generateName = stringAt(decoded, "metadata", "generateName") ?? "";
  const given = stringAt(decoded, "metadata", "name") ?? "";
  const name = given === "" && generateName !== "" ? `${generateName}${generatedSuffix()}` : given;
  admitToNamespace(request, name);
  admitToDefinition(request, name);
  checkGrants(request, withMetadata(decoded, { name }), undefined);
  const named = withMetadata(rewritten(request, "CREATE", decoded), {
    name,
    uid: randomUUID(),
    creationTimestamp: cluster.now(),
    resourceVersion: undefined,
    deletionTimestamp: undefined,
    deletionGracePeriodSeconds: undefined,
    selfLink: undefined,
    generation: kind.generation === "none" ? undefined : 1,
  });
  const bare = withoutStatus(request, named);
  const prepared = strategyOf(kind).prepare?.(bare, { cluster, live: undefined }) ?? bare;
  validate(request, prepared, undefined);
  askWebhooks(admissionOf(request, "CREATE"));
  const existing = cluster.store.get(resourceOf(kind), objectKey(request.namespace, name));
  if (existing !== undefined) {
    const deleting = valueAt(existing, "metadata", "deletionTimestamp") !== undefined;
    throw alreadyExists(resourceSubject(kind, name), deleting ? "object is being deleted: " : "");
  }
  if (request.dryRun) return { status: 201, object: prepared };
  return { status: 201, object: store(request, prepared) };
}

/** A create cannot set the status of a kind that has a status endpoint. */
function withoutStatus(request: WriteRequest, object: JsonObject): JsonObject {
  const { status: _, ...rest } = object;
  if (!hasSubresource(request.kind, "status")) return object;
  return request.kind.custom === undefined ? toServerObject({ ...request, warnings: [] }, rest, "configuration") : rest;
}

function store(request: WriteRequest, object: JsonObject): JsonObject {
  const { cluster, kind } = request;
  const stored = withMetadata(object, { resourceVersion: String(cluster.store.nextRevision()) });
  cluster.store.put(resourceOf(kind), stored);
  return stored;
}

/** PUT of an object or its status. */
export function replaceObject(request: WriteRequest): Written {
  const body = parseBody(request);
  const name = stringAt(body, "metadata", "name") ?? "";
  if (name !== "" && name !== request.name) throw nameMismatch(name, request.name);
  const next = toServerObject(request, body, "client");
  checkNamespace(request, next);
  const live = request.kind.createOnUpdate ? liveOf(request) : requireLive(request);
  if (live === undefined) return insertNew(request, next);
  const version = stringAt(next, "metadata", "resourceVersion") ?? "";
  if (version === "" && !request.kind.unconditionalUpdate) {
    throw invalid(resourceSubject(request.kind, request.name), [
      fieldErrors.invalid("metadata.resourceVersion", 0, "must be specified for an update"),
    ]);
  }
  const uid = stringAt(next, "metadata", "uid") ?? "";
  const liveUid = stringAt(live, "metadata", "uid") ?? "";
  if (uid !== "" && uid !== liveUid) {
    const key = `/registry/${request.kind.plural}/${request.namespace === "" ? "" : `${request.namespace}/`}${request.name}`;
    throw conflict(
      resourceSubject(request.kind, request.name),
      `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: ${uid}, UID in object meta: ${liveUid}`,
    );
  }
  return updateObject(request, live, next);
}

/** The error for a body that names another object than the path. */
export function nameMismatch(given: string, desired: string): StatusError {
  return badRequest(`the name of the object (${given}) does not match the name on the URL (${desired})`);
}

/** Sets the replicas under the subresource `scale`. It tracks managers only if a manager already owns the field. */
export function rescaleObject(
  request: WriteRequest,
  live: JsonObject,
  scale: { readonly next: JsonObject; readonly path: readonly string[] },
): Written {
  const { next, path } = scale;
  if (isOwned(live, path)) return updateObject(request, live, next);
  return overwrite(request, live, withManagedFields(next, managedFieldsList(live) ?? []));
}

/** PUT and all patches except apply: updates the managers, then stores the object. */
export function updateObject(request: WriteRequest, live: JsonObject, next: JsonObject): Written {
  const managedFields = trackUpdate(live, next, fieldsContext(request));
  return overwrite(request, live, withManagedFields(next, managedFields));
}

/** Keeps the stored value of the fields that the endpoint may not change. */
function keepForeignParts(request: WriteRequest, live: JsonObject, next: JsonObject): JsonObject {
  const { kind, subresource } = request;
  if (subresource === "status") {
    const metadata = { ...metadataOf(live), managedFields: managedFieldsList(next) };
    return { ...live, metadata: metadata as JsonObject, status: next.status };
  }
  if (subresource === "finalize") return { ...next, status: live.status };
  if (!hasSubresource(kind, "status")) return next;
  const { status: _, ...rest } = next;
  return live.status === undefined ? rest : { ...rest, status: live.status };
}

function checkVersion(request: WriteRequest, live: JsonObject, next: JsonObject): void {
  const version = stringAt(next, "metadata", "resourceVersion") ?? "";
  if (version === "" || version === "0") return;
  if (!/^\d+$/.test(version)) {
    throw internalError(`strconv.ParseUint: parsing ${JSON.stringify(version)}: invalid syntax`);
  }
  if (version !== stringAt(live, "metadata", "resourceVersion")) {
    throw conflict(resourceSubject(request.kind, request.name), staleVersion);
  }
}

/** Stores the new state of an object if it differs. @throws StatusError 400, 409 or 422. */
export function overwrite(asked: WriteRequest, live: JsonObject, given: JsonObject): Written {
  const request = { ...asked, kind: storedKind(asked.kind) };
  const { cluster, kind } = request;
  const next = inVersion(kind, given, apiVersionOf(kind));
  const name = stringAt(next, "metadata", "name") ?? "";
  if (name !== "" && name !== request.name) throw nameMismatch(name, request.name);
  checkNamespace(request, next);
  checkVersion(request, live, next);
  const before = metadataOf(live);
  const kept = withMetadata(keepForeignParts(request, live, rewritten(request, "UPDATE", next)), {
    name: request.name,
    namespace: before.namespace,
    uid: metadataOf(next).uid ?? before.uid,
    resourceVersion: before.resourceVersion,
    creationTimestamp: before.creationTimestamp,
    deletionTimestamp: metadataOf(next).deletionTimestamp ?? before.deletionTimestamp,
    deletionGracePeriodSeconds: before.deletionGracePeriodSeconds,
    generation: before.generation,
    selfLink: undefined,
  });
  checkGrants(request, kept, live);
  const strategy = request.subresource === "" ? strategyOf(kind) : {};
  const prepared = strategy.prepare?.(kept, { cluster, live }) ?? kept;
  const counted = withMetadata(prepared, { generation: nextGeneration(kind, live, prepared) });
  if (request.subresource === "") validate(request, counted, live);
  else validateStatus(request, counted, live);
  askWebhooks(admissionOf(request, "UPDATE"));
  if (sameIgnoringTimes(live, counted)) return { status: 200, object: live };
  if (isFinished(request, counted)) return { status: 200, object: finishDelete(request, counted) };
  return { status: 200, object: request.dryRun ? counted : store(request, counted) };
}

function validateStatus(request: WriteRequest, object: JsonObject, live: JsonObject): void {
  const { kind, cluster } = request;
  const errors = [
    ...(kind.custom === undefined ? [] : customErrors(kind.custom.schema, object)),
    ...(strategyOf(kind).validateStatus?.(object, { cluster, live }) ?? []),
  ];
  if (errors.length > 0) throw invalid(kindSubject(kind, nameOf(object)), errors);
}

function isFinished(request: WriteRequest, object: JsonObject): boolean {
  const metadata = metadataOf(object);
  if (metadata.deletionTimestamp === undefined) return false;
  if (request.kind.group === "" && request.kind.plural === "namespaces") {
    const finalizers = valueAt(object, "spec", "finalizers");
    if (Array.isArray(finalizers) && finalizers.length > 0) return false;
  }
  if (typeof metadata.deletionGracePeriodSeconds === "number" && metadata.deletionGracePeriodSeconds > 0) return false;
  return !Array.isArray(metadata.finalizers) || metadata.finalizers.length === 0;
}

/** Removes an object whose last finalizer this write removes, and answers with its last state. */
function finishDelete(request: WriteRequest, object: JsonObject): JsonObject {
  if (request.dryRun) return object;
  const { cluster, kind } = request;
  cluster.store.remove(
    resourceOf(kind),
    withMetadata(object, { resourceVersion: String(cluster.store.nextRevision()) }),
  );
  return object;
}

function contentOf(kind: Kind, object: JsonObject): JsonObject {
  const { metadata: _metadata, status, apiVersion: _apiVersion, kind: _kind, ...content } = object;
  return hasSubresource(kind, "status") ? content : { ...content, status };
}

function nextGeneration(kind: Kind, live: JsonObject, next: JsonObject): Json | undefined {
  const before = valueAt(live, "metadata", "generation");
  if (kind.generation === "none") return before;
  const changed =
    !deepEqual(contentOf(kind, live), contentOf(kind, next)) ||
    (kind.generation === "annotations" && !deepEqual(annotationsOf(live), annotationsOf(next)));
  return changed ? Number(before ?? 0) + 1 : before;
}
