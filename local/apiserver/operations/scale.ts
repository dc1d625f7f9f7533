import type { Cluster } from "#apiserver/cluster.ts";
import { objectKey } from "#apiserver/cluster-store.ts";
import { isJsonObject, type Json, type JsonObject } from "#apiserver/json.ts";
import { apiVersionOf, type Kind } from "#apiserver/kinds/kind.ts";
import { stringAt, valueAt } from "#apiserver/object-fields.ts";
import { metadataOf, resourceSubject } from "#apiserver/operations/object-meta.ts";
import { applyParsed, isApply } from "#apiserver/operations/patch-operations.ts";
import { jsonPatch, mergePatch } from "#apiserver/operations/patches.ts";
import { mediaType, parseApplyBody, parsePatch } from "#apiserver/operations/request-body.ts";
import { rescaleObject, resourceOf } from "#apiserver/operations/write-operations.ts";
import type { WriteRequest, Written } from "#apiserver/operations/write-request.ts";
import {
  badRequest,
  conflict,
  fieldErrors,
  invalid,
  notFound,
  StatusError,
  staleVersion,
} from "#apiserver/status-error.ts";

interface ScalePaths {
  readonly spec: string;
  readonly status: string;
  readonly selector: string | undefined;
}

function pathsOf(kind: Kind): ScalePaths {
  const scale = kind.custom?.scale;
  if (scale === undefined) return { spec: ".spec.replicas", status: ".status.replicas", selector: ".spec.selector" };
  const selector = scale.labelSelectorPath;
  return {
    spec: String(scale.specReplicasPath),
    status: String(scale.statusReplicasPath),
    selector: typeof selector === "string" ? selector : undefined,
  };
}

function at(object: JsonObject, path: string): Json | undefined {
  return valueAt(object, ...path.split(".").slice(1));
}

function selectorText(selector: Json | undefined): string | undefined {
  if (typeof selector === "string") return selector;
  const labels = valueAt(selector, "matchLabels") ?? selector;
  if (!isJsonObject(labels)) return undefined;
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${String(value)}`)
    .sort()
    .join(",");
}

function scaleOf(kind: Kind, object: JsonObject): JsonObject {
  const paths = pathsOf(kind);
  const replicas = at(object, paths.spec);
  if (replicas === undefined) {
    const message = `the spec replicas field ${JSON.stringify(paths.spec)} does not exist`;
    throw new StatusError(500, `Internal error occurred: ${message}`, {
      reason: "InternalError",
      details: { causes: [{ message }] },
    });
  }
  const { name, namespace, uid, resourceVersion, creationTimestamp } = metadataOf(object);
  const selector = paths.selector === undefined ? undefined : selectorText(at(object, paths.selector));
  return {
    kind: "Scale",
    apiVersion: "autoscaling/v1",
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    spec: replicas === 0 ? {} : { replicas },
    status: { replicas: at(object, paths.status) ?? 0, ...(selector === undefined ? {} : { selector }) },
  };
}

/** GET of the scale of a workload or custom resource. @throws StatusError 404 or 500. */
export function readScale(
  cluster: Cluster,
  kind: Kind,
  id: { readonly namespace: string; readonly name: string },
): JsonObject {
  const object = cluster.store.get(resourceOf(kind), objectKey(id.namespace, id.name));
  if (object === undefined) throw notFound(resourceSubject(kind, id.name));
  return scaleOf(kind, object);
}

/**
 * PUT, PATCH or apply of a scale. It sets the replicas of the object; the entry in managedFields has the subresource
 * `scale`.
 */
export function writeScale(request: WriteRequest, how: "replace" | "patch"): Written {
  const { cluster, kind } = request;
  const live = cluster.store.get(resourceOf(kind), objectKey(request.namespace, request.name));
  if (live === undefined) throw notFound(resourceSubject(kind, request.name));
  const apply = how === "patch" && isApply(request.contentType);
  const desired =
    how === "replace" || apply ? parseApplyBody(request.body, "Ignore").value : patchedScale(request, live);
  const version = stringAt(desired, "metadata", "resourceVersion") ?? "";
  if (version !== "" && version !== metadataOf(live).resourceVersion) {
    throw conflict(resourceSubject(kind, request.name), staleVersion);
  }
  const path = pathsOf(kind).spec.split(".").slice(1);
  const replicas = replicasIn(request, desired);
  const { status, object } = apply
    ? applyParsed(
        request,
        { apiVersion: apiVersionOf(kind), kind: kind.kind, ...set({}, path, replicas) },
        "autoscaling/v1",
      )
    : rescaleObject(request, live, { next: set(live, path, replicas), path });
  return { status, object: scaleOf(kind, object) };
}

function replicasIn(request: WriteRequest, desired: Json): number {
  const replicas = valueAt(desired, "spec", "replicas") ?? 0;
  if (typeof replicas !== "number") {
    throw badRequest("json: cannot unmarshal into Go struct field ScaleSpec.spec.replicas of type int32");
  }
  if (replicas >= 0) return replicas;
  throw invalid({ group: "autoscaling", kind: "Scale", name: request.name }, [
    fieldErrors.invalid("spec.replicas", replicas, "must be greater than or equal to 0"),
  ]);
}

function patchedScale({ kind, contentType, body }: WriteRequest, live: JsonObject): Json {
  const current = at(live, pathsOf(kind).spec) === undefined ? {} : scaleOf(kind, live);
  const patch = parsePatch(body);
  return mediaType(contentType) === "application/json-patch+json"
    ? jsonPatch(current, patch)
    : mergePatch(current, patch);
}

function set(object: JsonObject, path: readonly string[], value: Json): JsonObject {
  const [head, ...rest] = path;
  if (head === undefined) return object;
  const child = object[head];
  return { ...object, [head]: rest.length === 0 ? value : set(isJsonObject(child) ? child : {}, rest, value) };
}
