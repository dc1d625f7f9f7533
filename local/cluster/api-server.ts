import type { User } from "#local/cluster/authentication.ts";
import type { Cluster } from "#local/cluster/cluster.ts";
import { readCustom } from "#local/cluster/custom-kind.ts";
import { deleteCollection, deleteObject } from "#local/cluster/delete-operations.ts";
import {
  aggregatedDiscovery,
  coreVersions,
  groupList,
  groupOf,
  openApiDocument,
  openApiIndex,
  openApiV2,
  resourceList,
  versionDocument,
} from "#local/cluster/discovery.ts";
import { hasSubresource, type Kind } from "#local/cluster/kinds.ts";
import { negotiate, type Representation } from "#local/cluster/negotiation.ts";
import { resourceSubject } from "#local/cluster/object-meta.ts";
import { isApply, patchObject } from "#local/cluster/patch-operations.ts";
import { listObjects, present, type ReadRequest, readObject } from "#local/cluster/read-operations.ts";
import { readScale, writeScale } from "#local/cluster/scale.ts";
import { methodNotAllowed, noSuchResource, notFound, StatusError, unauthorized } from "#local/cluster/status-error.ts";
import { checkWatch, type EventSink, watchObjects } from "#local/cluster/watch.ts";
import { createObject, replaceObject } from "#local/cluster/write-operations.ts";
import { readWriteOptions, type WriteRequest, type Written } from "#local/cluster/write-request.ts";
import type { JsonObject } from "#shared/domain/json.ts";

/** What a caller wants to do, for whoever decides whether it may. */
export interface AccessRequest {
  readonly user: User;
  readonly verb: string;
  readonly path: string;
  /** Undefined on paths that name no resource. */
  readonly resource?: {
    readonly group: string;
    readonly plural: string;
    readonly subresource: string;
    readonly namespace: string;
    readonly name: string;
  };
}

/** Undefined allows; a text says why not. */
export type Authorizer = (request: AccessRequest) => "allow" | "deny";

export interface ApiRequest {
  readonly method: string;
  /** As sent, percent-encoded, without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly host: string;
  readonly accept: string | undefined;
  readonly contentType: string | undefined;
  readonly userAgent: string;
  /** Undefined where the credentials are nobody's. */
  readonly user: User | undefined;
  readonly body: string;
}

export interface ApiResponse {
  readonly status: number;
  readonly contentType: string;
  readonly body: string | JsonObject;
  readonly warnings: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
  /** Set for a watch: called once the headers are out. */
  readonly stream?: (sink: EventSink) => () => void;
}

/** A path that names a resource, decoded. */
export interface ResourcePath {
  readonly group: string;
  readonly version: string;
  readonly namespace: string | undefined;
  readonly plural: string;
  readonly name: string;
  readonly subresource: string;
}

/** Reads `/api/v1/...` and `/apis/GROUP/VERSION/...`; undefined for all other paths. */
export function parseResourcePath(path: string): ResourcePath | undefined {
  // As Go does, the path is decoded before it is split: an encoded slash is a slash.
  // The deprecated `/api/v1/watch/...` reads as what it watches.
  const parts = decodePath(path)
    .replace(/^\/|\/$/g, "")
    .replace(deprecatedWatch, "$1")
    .split("/");
  const core = parts[0] === "api";
  if (!core && parts[0] !== "apis") return undefined;
  const group = core ? "" : (parts[1] ?? "");
  const version = parts[core ? 1 : 2] ?? "";
  const rest = parts.slice(core ? 2 : 3);
  const [first] = rest;
  if (first === undefined) return undefined;
  const nested = first === "namespaces" && rest.length > 2 && !(core && ["status", "finalize"].includes(rest[2] ?? ""));
  const [plural = "", name = "", ...subresource] = nested ? rest.slice(2) : rest;
  return { group, version, namespace: nested ? rest[1] : undefined, plural, name, subresource: subresource.join("/") };
}

const deprecatedWatch = /^(api\/[^/]+\/|apis\/[^/]+\/[^/]+\/)watch\//;

function decodePath(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    // A stray % is no encoding; such a name exists nowhere.
    return path;
  }
}

function text(status: number, body: string): ApiResponse {
  return { status, contentType: "text/plain; charset=utf-8", body, warnings: [] };
}

function pageNotFound(): ApiResponse {
  return text(404, "404 page not found\n");
}

/** kube-aggregator, proxyHandler: for an APIService whose Available is False. */
function serviceUnavailable(): ApiResponse {
  return text(503, "service unavailable\n");
}

function json(body: JsonObject, contentType = "application/json"): ApiResponse {
  return { status: 200, contentType, body, warnings: [] };
}

const anonymousPaths = ["/healthz", "/livez", "/readyz", "/version"];

function verbOf(request: ApiRequest, path: ResourcePath): string {
  switch (request.method) {
    case "POST":
      return "create";
    case "PUT":
      return "update";
    case "PATCH":
      return "patch";
    case "DELETE":
      return path.name === "" ? "deletecollection" : "delete";
    default:
      if (path.name === "" && isWatch(request)) return "watch";
      return path.name === "" ? "list" : "get";
  }
}

function authorize(access: AccessRequest, authorizer: Authorizer): void {
  if (access.user.groups.includes("system:masters") || authorizer(access) === "allow") return;
  const { resource, user, verb } = access;
  if (resource === undefined) {
    throw new StatusError(
      403,
      `forbidden: User ${JSON.stringify(user.username)} cannot ${verb} path ${JSON.stringify(access.path)}`,
      {
        reason: "Forbidden",
        details: {},
      },
    );
  }
  const { group, plural, subresource, namespace, name } = resource;
  const shown = group === "" ? plural : `${plural}.${group}`;
  const target = subresource === "" ? plural : `${plural}/${subresource}`;
  const where = namespace === "" ? "at the cluster scope" : `in the namespace ${JSON.stringify(namespace)}`;
  const message = `${shown}${name === "" ? "" : ` ${JSON.stringify(name)}`} is forbidden: User ${JSON.stringify(user.username)} cannot ${verb} resource ${JSON.stringify(target)} in API group ${JSON.stringify(group)} ${where}`;
  throw new StatusError(403, message, {
    reason: "Forbidden",
    details: { ...(name === "" ? {} : { name }), ...(group === "" ? {} : { group }), kind: plural },
  });
}

/** Answers one request; errors become Status objects. */
export function handleRequest(cluster: Cluster, request: ApiRequest, authorizer: Authorizer): ApiResponse {
  const warnings: string[] = [];
  try {
    const { user } = request;
    if (user === undefined) throw unauthorized();
    const path = parseResourcePath(request.path);
    if (path === undefined) {
      if (!anonymousPaths.includes(request.path)) {
        authorize({ user, verb: request.method.toLowerCase(), path: request.path }, authorizer);
      }
      return handleOther(cluster, request);
    }
    const { group, plural, subresource, name } = path;
    const namespace = path.namespace ?? (group === "" && plural === "namespaces" ? path.name : "");
    const resource = { group, plural, subresource, namespace, name };
    authorize({ user, verb: verbOf(request, path), path: request.path, resource }, authorizer);
    return handleResource({ cluster, request, path, warnings });
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    const yaml = (request.accept ?? "").startsWith("application/yaml");
    const contentType = yaml ? "application/yaml" : "application/json";
    return { status: error.code, contentType, body: error.body(), warnings, headers: error.headers };
  }
}

function handleOther(cluster: Cluster, request: ApiRequest): ApiResponse {
  const { path } = request;
  if (["/healthz", "/livez", "/readyz"].includes(path)) return text(200, "ok");
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
  const [root, first, second, ...more] = request.path.split("/").filter((part) => part !== "");
  if (root === "version" && first === undefined) return json(versionDocument(cluster.options.version));
  if (root === "openapi")
    return openApi(
      cluster,
      [first, second, ...more].filter((part) => part !== undefined),
    );
  if (root !== "api" && root !== "apis") return undefined;
  const representation = negotiate(request.accept);
  if (first === undefined) {
    const plain = root === "api" ? coreVersions(request.host) : groupList(cluster);
    if (!representation.aggregated) return json(plain);
    return json(aggregatedDiscovery(cluster, root === "api" ? "core" : "named"), representation.contentType);
  }
  const core = root === "api";
  if (!core && cluster.faults.isUnavailable(first, second ?? "")) return serviceUnavailable();
  const document =
    !core && second === undefined
      ? groupOf(cluster, first)
      : resourceList(cluster, core ? "" : first, core ? first : (second ?? ""));
  return document && json(document);
}

function openApi(cluster: Cluster, [version, ...path]: readonly string[]): ApiResponse | undefined {
  if (version === "v2") return json(openApiV2(cluster));
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
  readonly warnings: string[];
}

function handleResource(call: ResourceCall): ApiResponse {
  const { cluster, path, request } = call;
  if (cluster.faults.isUnavailable(path.group, path.version)) return serviceUnavailable();
  const kind = cluster.kindOf(path.group, path.version, path.plural);
  if (kind === undefined || isMisplaced(call, kind)) return unknownResource(call, kind);
  const { subresource } = path;
  if (subresource !== "" && !(hasSubresource(kind, subresource) && servedSubresources.includes(subresource))) {
    if (kind.custom === undefined) throw noSuchResource();
    throw notFound(resourceSubject(kind, path.name));
  }
  const representation = negotiate(request.accept);
  if (kind.group === "" && kind.plural === "endpoints") call.warnings.push(endpointsWarning);
  if (request.method === "GET") return handleRead(call, kind, representation);
  const { status, object } = handleWrite(call, kind);
  const plain = object.kind === "Status" || object.kind === "Scale";
  const body = plain
    ? object
    : present({ cluster, kind, query: request.query, representation }, readCustom(kind, object));
  return { status, contentType: representation.contentType, body, warnings: call.warnings };
}

const endpointsWarning = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";
const servedSubresources = ["status", "scale", "finalize"];

/** Reads over all namespaces are the only use of a namespaced kind without a namespace. */
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
  const { query } = request;
  const read: ReadRequest = { cluster, kind, namespace: path.namespace, query, representation };
  const { contentType } = representation;
  if (path.name === "" && isWatch(request)) {
    // A watch that cannot begin is refused before its headers are out.
    checkWatch(kind, query);
    return { ...json({}), stream: (sink) => watchObjects(read, sink) };
  }
  if (path.name === "") return { ...json(listObjects(read), contentType), warnings: call.warnings };
  if (path.subresource === "scale")
    return json(readScale(cluster, kind, { namespace: path.namespace ?? "", name: path.name }));
  return { ...json(readObject(read, path.name), contentType), warnings: call.warnings };
}

function isWatch({ path, query }: ApiRequest): boolean {
  const watch = query.get("watch");
  return watch === "true" || watch === "1" || deprecatedWatch.test(path.slice(1));
}

function handleWrite(call: ResourceCall, kind: Kind): Written {
  const { cluster, path, request, warnings } = call;
  const { method, query } = request;
  const namespace = path.namespace ?? "";
  if (method === "DELETE" && path.subresource === "") {
    const remove = { cluster, kind, namespace, name: path.name, query, body: request.body, warnings };
    if (path.name !== "") return { status: 200, object: deleteObject(remove) };
    if (!kind.verbs.includes("deletecollection")) throw methodNotAllowed();
    return { status: 200, object: deleteCollection(remove) };
  }
  const allowed = path.name === "" ? method === "POST" : method === "PUT" || method === "PATCH";
  if (!allowed) throw methodNotAllowed();
  const apply = isApply(request.contentType);
  const options = readWriteOptions(query, {
    kind: method === "POST" ? "CreateOptions" : method === "PUT" ? "UpdateOptions" : "PatchOptions",
    apply: apply && method === "PATCH",
    userAgent: request.userAgent,
  });
  const { contentType, body } = request;
  const write: WriteRequest = {
    ...options,
    cluster,
    kind,
    namespace,
    name: path.name,
    subresource: path.subresource,
    contentType,
    body,
    warnings,
  };
  if (path.subresource === "scale") return writeScale(write, method === "PUT" ? "replace" : "patch");
  if (method === "POST") return createObject(write);
  return method === "PUT" ? replaceObject(write) : patchObject(write);
}
