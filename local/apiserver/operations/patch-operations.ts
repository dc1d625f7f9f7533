import { trackApply, withManagedFields } from "#apiserver/apply/managed-fields.ts";
import { typedErrors } from "#apiserver/apply/typed-value.ts";
import { canonicalJson, isJsonObject, type Json, type JsonObject } from "#apiserver/json.ts";
import { readStored } from "#apiserver/kinds/custom-kind.ts";
import { apiVersionOf } from "#apiserver/kinds/kind.ts";
import { annotationsOf, stringAt, valueAt } from "#apiserver/object-fields.ts";
import { resourceSubject, withMetadata } from "#apiserver/operations/object-meta.ts";
import { jsonPatch, mergePatch, strategicMergePatch } from "#apiserver/operations/patches.ts";
import { mediaType, parseApplyBody, parsePatch } from "#apiserver/operations/request-body.ts";
import {
  checkNamespace,
  insert,
  liveOf,
  nameMismatch,
  overwrite,
  requireLive,
  updateObject,
} from "#apiserver/operations/write-operations.ts";
import {
  fieldsContext,
  shownObject,
  toServerObject,
  unfitPatch,
  type WriteRequest,
  type Written,
} from "#apiserver/operations/write-request.ts";
import { badRequest, conflict, internalError, StatusError, unsupportedMediaType } from "#apiserver/status-error.ts";

const patchTypes = {
  json: "application/json-patch+json",
  merge: "application/merge-patch+json",
  strategic: "application/strategic-merge-patch+json",
  apply: "application/apply-patch+yaml",
} as const;

export function isApply(contentType: string | undefined): boolean {
  return mediaType(contentType) === patchTypes.apply;
}

/** PATCH of any patch type. */
export function patchObject(request: WriteRequest): Written {
  const type = mediaType(request.contentType);
  if (type === patchTypes.apply) return applyObject(request);
  if (request.kind.custom !== undefined && type === patchTypes.strategic) {
    throw unsupportedMediaType([patchTypes.json, patchTypes.merge, patchTypes.apply]);
  }
  if (type !== patchTypes.json && type !== patchTypes.merge && type !== patchTypes.strategic) {
    throw new StatusError(415, "415: Unsupported Media Type", { reason: "UnsupportedMediaType", details: {} });
  }
  const live = requireLive(request);
  const patched = patchedObject(request, readStored(request.kind, live), type);
  if (!isJsonObject(patched)) throw badRequest("error decoding patch: the patch does not leave an object");
  if (patched.kind !== request.kind.kind || patched.apiVersion !== apiVersionOf(request.kind)) {
    throw unfitPatch(patched, `apiVersion and kind of an object cannot change`);
  }
  return updateObject(request, live, toServerObject(request, patched, "patch"));
}

function patchedObject(request: WriteRequest, live: JsonObject, type: string): Json {
  const patch = parsePatch(request.body);
  if (type === patchTypes.json) return jsonPatch(live, patch);
  if (!isJsonObject(patch)) {
    const what = Array.isArray(patch) ? "array" : typeof patch;
    throw badRequest(
      `error decoding patch: json: cannot unmarshal ${what} into Go value of type map[string]interface {}`,
    );
  }
  const ref = request.kind.typeIn(request.kind.version);
  return type === patchTypes.merge || ref === undefined
    ? mergePatch(live, patch)
    : strategicMergePatch(ref, live, patch);
}

/** Server-side apply. It creates the object if it does not exist. */
function applyObject(request: WriteRequest): Written {
  const { kind } = request;
  const { value: config, warnings } = parseApplyBody(request.body, request.fieldValidation);
  const given = { apiVersion: config.apiVersion ?? "", kind: config.kind ?? "" };
  if (given.apiVersion !== apiVersionOf(kind) || given.kind !== kind.kind) {
    const version =
      typeof given.apiVersion === "string" && given.apiVersion.includes("/")
        ? given.apiVersion
        : `/${String(given.apiVersion)}`;
    throw badRequest(`invalid object type: ${version}, Kind=${String(given.kind)}`);
  }
  if (request.subresource !== "") requireLive(request);
  request.warnings.push(...warnings);
  if (
    valueAt(config, "metadata", "managedFields") !== undefined &&
    valueAt(config, "metadata", "managedFields") !== null
  ) {
    throw badRequest("metadata.managedFields must be nil");
  }
  const ref = kind.typeIn(kind.version);
  const problems = ref === undefined ? [] : typedErrors(ref, config);
  if (problems.length > 0) throw typedPatchError(config, problems);
  return applyParsed(request, config, undefined);
}

/** Applies a checked configuration. Conflicts name `shownVersion` if it is set. */
export function applyParsed(request: WriteRequest, config: JsonObject, shownVersion: string | undefined): Written {
  const context = {
    ...fieldsContext(request),
    force: request.force,
    ...(shownVersion === undefined ? {} : { shownVersion }),
  };
  const live = liveOf(request);
  const { object, managedFields } = trackApply(live, config, context);
  const decoded = toServerObject(request, syncLastApplied(request, object, config), "configuration");
  const next = withManagedFields(checkNamespace(request, decoded), managedFields);
  if (live !== undefined) return overwrite(request, live, next);
  return createByApply(request, next);
}

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration";

/**
 * Server-side applies of kubectl update the annotation that client-side applies read (fieldmanager,
 * lastAppliedUpdater).
 */
function syncLastApplied(request: WriteRequest, object: JsonObject, config: JsonObject): JsonObject {
  const annotations = annotationsOf(object);
  if (request.manager !== "kubectl" || annotations[lastApplied] === undefined) return object;
  const { [lastApplied]: _, ...rest } = annotationsOf(config);
  const given = Object.keys(rest).length === 0 ? undefined : rest;
  const text = `${canonicalJson(withMetadata(config, { annotations: given }))}\n`;
  return withMetadata(object, { annotations: { ...annotations, [lastApplied]: text } });
}

function typedPatchError(config: JsonObject, problems: readonly string[]): StatusError {
  const [only] = problems;
  const text = problems.length === 1 ? only : ["errors:", ...problems.map((problem) => `  ${problem}`)].join("\n");
  return internalError(`failed to create typed patch object (${shownObject(config)}): ${text}`);
}

function createByApply(request: WriteRequest, next: JsonObject): Written {
  const name = stringAt(next, "metadata", "name") ?? "";
  if (name !== "" && name !== request.name) throw nameMismatch(name, request.name);
  const uid = stringAt(next, "metadata", "uid") ?? "";
  if (uid !== "") {
    throw conflict(
      resourceSubject(request.kind, request.name),
      `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`,
    );
  }
  return insert(request, withMetadata(next, { name: request.name }));
}
