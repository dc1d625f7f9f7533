import type { Cluster } from "#apiserver/cluster.ts";
import { keyOf, objectKey } from "#apiserver/cluster-store.ts";
import { isJsonObject, type Json, type JsonObject } from "#apiserver/json.ts";
import { readStored } from "#apiserver/kinds/custom-kind.ts";
import { apiVersionOf, goGroup, type Kind } from "#apiserver/kinds/kind.ts";
import type { Representation } from "#apiserver/operations/negotiation.ts";
import { resourceSubject } from "#apiserver/operations/object-meta.ts";
import { type Predicate, parseFieldSelector, parseLabelSelector } from "#apiserver/operations/selectors.ts";
import { partialMetadata, type TableOptions, toTable } from "#apiserver/operations/table.ts";
import { resourceOf } from "#apiserver/operations/write-operations.ts";
import { badRequest, type FieldError, fieldErrors, invalid, notFound, StatusError } from "#apiserver/status-error.ts";

export interface ReadRequest {
  readonly cluster: Cluster;
  readonly kind: Kind;
  /** Undefined means all namespaces. */
  readonly namespace: string | undefined;
  readonly query: URLSearchParams;
  readonly representation: Representation;
}

/** One object in the requested version and form. @throws StatusError 404. */
export function readObject(request: ReadRequest, name: string): JsonObject {
  const stored = request.cluster.store.get(resourceOf(request.kind), objectKey(request.namespace ?? "", name));
  if (stored === undefined) throw notFound(resourceSubject(request.kind, name));
  return present(request, readStored(request.kind, stored));
}

/** An object in the requested form. */
export function present(
  request: Pick<ReadRequest, "cluster" | "kind" | "query" | "representation">,
  object: JsonObject,
): JsonObject {
  switch (request.representation.as) {
    case "Table": {
      const metadata = { resourceVersion: isJsonObject(object.metadata) ? object.metadata.resourceVersion : "" };
      return toTable(request.kind, [object], tableOptions(request, metadata));
    }
    case "PartialObjectMetadata":
      return partialMetadata(object);
    case "PartialObjectMetadataList":
      throw notAcceptable(`you requested PartialObjectMetadataList, but the requested object is not a list`);
    default:
      return object;
  }
}

function notAcceptable(message: string): StatusError {
  return new StatusError(406, message, { reason: "NotAcceptable" });
}

function tableOptions(request: Pick<ReadRequest, "cluster" | "query">, metadata: JsonObject): TableOptions {
  const include = request.query.get("includeObject");
  return {
    metadata,
    include: include === "None" || include === "Object" ? include : "Metadata",
    nowMs: request.cluster.options.clock(),
  };
}

/** A predicate for the objects that a query selects. @throws StatusError 400. */
export function selection(kind: Kind, query: URLSearchParams): Predicate {
  const labels = parseLabelSelector(query.get("labelSelector") ?? "");
  const fields = parseFieldSelector(query.get("fieldSelector") ?? "", {
    key: resourceOf(kind),
    custom: kind.custom !== undefined,
  });
  return (object) => labels(object) && fields(object);
}

interface Continue {
  readonly revision: number;
  readonly start: string;
}

function readContinue(token: string): Continue {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(token, "base64url").toString());
    if (isJsonObject(parsed) && typeof parsed.start === "string")
      return { revision: Number(parsed.rv), start: parsed.start };
  } catch {
    // The token is not from this server; the error below says so.
  }
  throw badRequest(
    "invalid continue token: continue key is not valid: invalid character 'i' looking for beginning of value",
  );
}

function readLimit(query: URLSearchParams): number {
  const limit = query.get("limit");
  if (limit === null || limit === "") return 0;
  if (!/^-?\d+$/.test(limit)) {
    throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(limit)}: invalid syntax`);
  }
  return Math.max(0, Number(limit));
}

const matches = ["Exact", "NotOlderThan", ""];

/** The resourceVersion of a list or watch; 0 means any. @throws StatusError 400, 422 or 504. */
function readVersion(cluster: Cluster, query: URLSearchParams): number {
  const version = query.get("resourceVersion") ?? "";
  const match = query.get("resourceVersionMatch") ?? "";
  const errors: FieldError[] = [];
  if (match !== "" && version === "") {
    errors.push(
      fieldErrors.forbidden(
        "resourceVersionMatch",
        "resourceVersionMatch is forbidden unless resourceVersion is provided",
      ),
    );
  } else if (!matches.includes(match)) {
    errors.push(fieldErrors.unsupported("resourceVersionMatch", match, matches));
  } else if (match === "Exact" && version === "0") {
    errors.push(
      fieldErrors.forbidden(
        "resourceVersionMatch",
        'resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
      ),
    );
  }
  if (errors.length > 0) throw invalid({ group: "meta.k8s.io", kind: "ListOptions", name: "" }, errors);
  if (version === "") return 0;
  if (!/^\d+$/.test(version)) {
    const quoted = JSON.stringify(version);
    throw badRequest(
      `invalid resource version: resourceVersion: Invalid value: ${quoted}: strconv.ParseUint: parsing ${quoted}: invalid syntax`,
    );
  }
  if (Number(version) > cluster.store.revision) {
    throw new StatusError(504, `Timeout: Too large resource version: ${version}, current: ${cluster.store.revision}`, {
      reason: "Timeout",
      details: {
        causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
        retryAfterSeconds: 1,
      },
      headers: { "retry-after": "1" },
    });
  }
  return Number(version);
}

/** One page of a collection. It begins after the key in the continue token. */
export function listObjects(request: ReadRequest): JsonObject {
  const { cluster, kind, query, representation } = request;
  if (representation.as === "PartialObjectMetadata") {
    throw notAcceptable(
      `you requested PartialObjectMetadata, but the requested object is a list (*${goGroup(kind.group)}.${kind.listKind})`,
    );
  }
  const limit = readLimit(query);
  const token = query.get("continue") ?? "";
  const version = query.get("resourceVersion") ?? "";
  if (token !== "" && version !== "" && version !== "0") {
    throw badRequest("specifying resource version is not allowed when using continue");
  }
  if (token === "") readVersion(cluster, query);
  const from = token === "" ? undefined : readContinue(token);
  const selected = selection(kind, query);
  const all = cluster.store.list(resourceOf(kind), request.namespace);
  const first = from === undefined ? 0 : all.findIndex((object) => keyOf(object) === from.start) + 1;
  const page: JsonObject[] = [];
  let index = first;
  for (; index < all.length && (limit === 0 || page.length < limit); index += 1) {
    const object = all[index];
    if (object !== undefined && selected(object)) page.push(readStored(kind, object));
  }
  const rest = all.slice(index).filter(selected).length;
  const revision = from?.revision ?? cluster.store.revision;
  const last = page.at(-1);
  const next = rest === 0 || last === undefined ? undefined : writeContinue({ revision, start: keyOf(last) });
  const exact = (query.get("labelSelector") ?? "") === "" && (query.get("fieldSelector") ?? "") === "";
  return listBody(request, page, {
    resourceVersion: String(revision),
    ...(next === undefined ? {} : { continue: next }),
    ...(next === undefined || !exact ? {} : { remainingItemCount: rest }),
  });
}

function writeContinue({ revision, start }: Continue): string {
  return Buffer.from(JSON.stringify({ v: "meta.k8s.io/v1", rv: revision, start })).toString("base64url");
}

function listBody(request: ReadRequest, items: readonly JsonObject[], metadata: JsonObject): JsonObject {
  const { kind, representation } = request;
  if (representation.as === "Table") return toTable(kind, items, tableOptions(request, metadata));
  if (representation.as === "PartialObjectMetadataList") {
    return {
      kind: "PartialObjectMetadataList",
      apiVersion: "meta.k8s.io/v1",
      metadata,
      items: items.map(partialMetadata),
    };
  }
  const apiVersion = apiVersionOf(kind);
  if (kind.custom !== undefined)
    return { apiVersion, items, kind: kind.listKind, metadata: { continue: "", ...metadata } };
  return { kind: kind.listKind, apiVersion, metadata, items: items.map(withoutType) };
}

/** Items in lists of built-in kinds omit apiVersion and kind. */
export function withoutType(object: JsonObject): Json {
  const { apiVersion: _apiVersion, kind: _kind, ...rest } = object;
  return rest;
}
