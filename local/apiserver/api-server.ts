import { isUnavailable } from "#apiserver/aggregated-apis.ts";
import { type Access, accessOf, forbiddenAccess } from "#apiserver/authorization/access.ts";
import { type HeaderValues, impersonate } from "#apiserver/authorization/impersonation.ts";
import { decide } from "#apiserver/authorization/rbac.ts";
import type { User } from "#apiserver/authorization/user.ts";
import type { Cluster } from "#apiserver/cluster.ts";
import type { JsonObject } from "#apiserver/json.ts";
import { readStored } from "#apiserver/kinds/custom-kind.ts";
import { hasSubresource, type Kind } from "#apiserver/kinds/kind.ts";
import { deleteCollection, deleteObject } from "#apiserver/operations/delete-operations.ts";
import {
  aggregatedDiscovery,
  coreVersions,
  groupList,
  groupOf,
  openApiDocument,
  openApiIndex,
  openApiV2,
  openApiV2Message,
  openApiV2Protobuf,
  resourceList,
  versionDocument,
} from "#apiserver/operations/discovery.ts";
import { negotiate, type Representation } from "#apiserver/operations/negotiation.ts";
import { resourceSubject } from "#apiserver/operations/object-meta.ts";
import { isApply, patchObject } from "#apiserver/operations/patch-operations.ts";
import { listObjects, present, type ReadRequest, readObject } from "#apiserver/operations/read-operations.ts";
import { createReview, createToken, isReview } from "#apiserver/operations/reviews.ts";
import { readScale, writeScale } from "#apiserver/operations/scale.ts";
import { checkWatch, type EventSink, watchObjects } from "#apiserver/operations/watch.ts";
import { createObject, liveOf, replaceObject } from "#apiserver/operations/write-operations.ts";
import { readWriteOptions, type WriteRequest, type Written } from "#apiserver/operations/write-request.ts";
import { isWatch, parseResourcePath, type ResourcePath } from "#apiserver/resource-path.ts";
import { methodNotAllowed, noSuchResource, notFound, StatusError, unauthorized } from "#apiserver/status-error.ts";

export interface ApiRequest {
  readonly method: string;
  /** As the client sent it: percent-encoded, without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly host: string;
  readonly accept: string | undefined;
  readonly contentType: string | undefined;
  readonly userAgent: string;
  /** Undefined where the credentials are invalid. */
  readonly user: User | undefined;
  readonly headers: HeaderValues;
  readonly body: string;
}

export interface ApiResponse {
  readonly status: number;
  readonly contentType: string;
  readonly body: string | JsonObject;
  readonly warnings: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
  /** Set for a watch; the listener calls it after it has sent the headers. */
  readonly stream?: (sink: EventSink) => () => void;
}

function text(status: number, body: string): ApiResponse {
  return { status, contentType: "text/plain; charset=utf-8", body, warnings: [] };
}

function pageNotFound(): ApiResponse {
  return text(404, "404 page not found\n");
}

/** As proxyHandler of kube-aggregator answers for an APIService whose condition Available is False. */
function serviceUnavailable(): ApiResponse {
  return text(503, "service unavailable\n");
}

function json(body: JsonObject, contentType = "application/json"): ApiResponse {
  return { status: 200, contentType, body, warnings: [] };
}

/** Every user may read these paths (--authorization-always-allow-paths). */
const openPaths = ["/healthz", "/livez", "/readyz"];

/** The access that a request asks for, as the impersonated user if there is one. @throws StatusError 401 or 403. */
function authorize(cluster: Cluster, request: ApiRequest, path: ResourcePath | undefined): Access {
  if (request.user === undefined) throw unauthorized();
  const asked = accessOf(request, path, request.user);
  const access = { ...asked, user: impersonate(cluster.store, asked, request.headers) };
  if (!openPaths.includes(request.path)) requireAccess(cluster, access);
  return access;
}

function requireAccess(cluster: Cluster, access: Access): void {
  const { allowed, reason } = decide(cluster.store, access);
  if (!allowed) throw forbiddenAccess(access, reason);
}

/** Answers one request. Errors become Status objects. */
export function handleRequest(cluster: Cluster, request: ApiRequest): ApiResponse {
  const warnings: string[] = [];
  try {
    const path = parseResourcePath(request.path);
    const access = authorize(cluster, request, path);
    if (path === undefined) return handleOther(cluster, request);
    return handleResource({ cluster, request, path, access, warnings });
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    const yaml = (request.accept ?? "").startsWith("application/yaml");
    const contentType = yaml ? "application/yaml" : "application/json";
    return { status: error.code, contentType, body: error.body(), warnings, headers: error.headers };
  }
}

function handleOther(cluster: Cluster, request: ApiRequest): ApiResponse {
  const { path } = request;
  if (openPaths.includes(path)) return text(200, "ok");
  const document = documentAt(cluster, request);
  if (document === undefined) return unknownPath(cluster, path);
  if (request.method !== "GET") throw methodNotAllowed();
  return document;
}

function unknownPath(cluster: Cluster, path: string): ApiResponse {
  const [root, group = ""] = path.split("/").filter((part) => part !== "");
  if (root === "api" || (root === "apis" && groupOf(cluster, group) !== undefined)) throw noSuchResource();
  return pageNotFound();
}

function documentAt(cluster: Cluster, request: ApiRequest): ApiResponse | undefined {
  const [root, first, second] = request.path.split("/").filter((part) => part !== "");
  if (root === "version" && first === undefined) return json(versionDocument(cluster.options.version));
  if (root === "openapi") return openApi(cluster, request);
  if (root !== "api" && root !== "apis") return undefined;
  const representation = negotiate(request.accept);
  if (first === undefined) {
    const plain = root === "api" ? coreVersions(request.host) : groupList(cluster);
    if (!representation.aggregated) return json(plain);
    return json(aggregatedDiscovery(cluster, root === "api" ? "core" : "named"), representation.contentType);
  }
  const core = root === "api";
  if (!core && isUnavailable(cluster, first, second ?? "")) return serviceUnavailable();
  const document =
    !core && second === undefined
      ? groupOf(cluster, first)
      : resourceList(cluster, core ? "" : first, core ? first : (second ?? ""));
  return document && json(document);
}

function openApi(cluster: Cluster, request: ApiRequest): ApiResponse | undefined {
  const [, version, ...path] = request.path.split("/").filter((part) => part !== "");
  if (version === "v2") {
    const protobuf = request.accept?.startsWith("application/com.github.proto-openapi.spec.v2") === true;
    return protobuf
      ? { ...text(200, openApiV2Message(cluster)), contentType: openApiV2Protobuf }
      : json(openApiV2(cluster));
  }
  if (version !== "v3") return undefined;
  if (path.length === 0) return { ...json(openApiIndex(cluster)), contentType: "text/plain; charset=utf-8" };
  const core = path[0] === "api";
  const document = openApiDocument(cluster, core ? "" : (path[1] ?? ""), path[core ? 1 : 2] ?? "");
  return document && json(document);
}

interface ResourceCall {
  readonly cluster: Cluster;
  readonly request: ApiRequest;
  readonly path: ResourcePath;
  readonly access: Access;
  readonly warnings: string[];
}

function handleResource(call: ResourceCall): ApiResponse {
  const { cluster, path, request } = call;
  if (isUnavailable(cluster, path.group, path.version)) return serviceUnavailable();
  const kind = cluster.kindOf(path.group, path.version, path.plural);
  if (kind === undefined || isMisplaced(call, kind)) return unknownResource(call, kind);
  const { subresource } = path;
  if (subresource !== "" && !(hasSubresource(kind, subresource) && servedSubresources.includes(subresource))) {
    if (kind.custom === undefined) throw noSuchResource();
    throw notFound(resourceSubject(kind, path.name));
  }
  const representation = negotiate(request.accept);
  if (kind.group === "" && kind.plural === "endpoints") call.warnings.push(endpointsWarning);
  if (isReview(kind) && path.name !== "") throw noSuchResource();
  if (request.method === "GET") return handleRead(call, kind, representation);
  const { status, object } = handleWrite(call, kind);
  const plain = ["Status", "Scale", "TokenRequest"].includes(String(object.kind));
  const body = plain
    ? object
    : present({ cluster, kind, query: request.query, representation }, readStored(kind, object));
  return { status, contentType: representation.contentType, body, warnings: call.warnings };
}

const endpointsWarning = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";
const servedSubresources = ["status", "scale", "finalize", "token"];

/** A request for a namespaced kind may leave out the namespace only to list or watch all namespaces. */
function isMisplaced({ path, request }: ResourceCall, kind: Kind): boolean {
  if (!kind.namespaced) return path.namespace !== undefined;
  return path.namespace === undefined && (path.name !== "" || request.method !== "GET");
}

function unknownResource({ cluster, path }: ResourceCall, kind: Kind | undefined): ApiResponse {
  const group = groupOf(cluster, path.group);
  const custom = kind?.custom !== undefined || isCustomGroup(cluster, path.group);
  if (custom || (group === undefined && path.group !== "")) return pageNotFound();
  throw noSuchResource();
}

function isCustomGroup(cluster: Cluster, group: string): boolean {
  return [...cluster.customKinds().values()].some(([kind]) => kind?.group === group);
}

function handleRead(call: ResourceCall, kind: Kind, representation: Representation): ApiResponse {
  const { cluster, path, request } = call;
  if (!kind.verbs.includes("get") || path.subresource === "token") throw methodNotAllowed();
  const { query } = request;
  const read: ReadRequest = { cluster, kind, namespace: path.namespace, query, representation };
  const { contentType } = representation;
  if (path.name === "" && isWatch(request)) {
    // The server refuses an invalid watch before it sends the headers.
    checkWatch(kind, query);
    return { ...json({}), stream: (sink) => watchObjects(read, sink) };
  }
  if (path.name === "") return { ...json(listObjects(read), contentType), warnings: call.warnings };
  if (path.subresource === "scale")
    return json(readScale(cluster, kind, { namespace: path.namespace ?? "", name: path.name }));
  return { ...json(readObject(read, path.name), contentType), warnings: call.warnings };
}

function handleWrite(call: ResourceCall, kind: Kind): Written {
  const { cluster, path, request, access, warnings } = call;
  const { method, query } = request;
  const namespace = path.namespace ?? "";
  if (method === "DELETE" && path.subresource === "") {
    const remove = { cluster, kind, namespace, name: path.name, query, body: request.body, warnings };
    if (path.name !== "") return { status: 200, object: deleteObject(remove) };
    if (!kind.verbs.includes("deletecollection")) throw methodNotAllowed();
    return { status: 200, object: deleteCollection(remove) };
  }
  const posted = path.name === "" || path.subresource === "token";
  const allowed = posted ? method === "POST" : method === "PUT" || method === "PATCH";
  if (!allowed) throw methodNotAllowed();
  const apply = isApply(request.contentType);
  const options = readWriteOptions(query, {
    kind: method === "POST" ? "CreateOptions" : method === "PUT" ? "UpdateOptions" : "PatchOptions",
    apply: apply && method === "PATCH",
    userAgent: request.userAgent,
  });
  const { contentType, body } = request;
  const write = {
    ...options,
    cluster,
    user: access.user,
    kind,
    namespace,
    name: path.name,
    subresource: path.subresource,
    contentType,
    body,
    warnings,
  } satisfies WriteRequest;
  if (path.subresource === "scale") return writeScale(write, method === "PUT" ? "replace" : "patch");
  if (path.subresource === "token") return createToken(write);
  if (isReview(kind)) return createReview(write);
  if (method === "POST") return createObject(write);
  const mayCreate = method === "PUT" ? kind.createOnUpdate : apply;
  if (mayCreate && liveOf(write) === undefined) requireAccess(cluster, { ...access, verb: "create" });
  return method === "PUT" ? replaceObject(write) : patchObject(write);
}
