import type { IncomingMessage, ServerResponse } from "node:http";
import { dump } from "js-yaml";
import { type ApiRequest, type ApiResponse, handleRequest } from "#apiserver/api-server.ts";
import { type Authenticator, authenticate } from "#apiserver/authorization/authentication.ts";
import type { User } from "#apiserver/authorization/user.ts";
import type { Cluster } from "#apiserver/cluster.ts";
import type { Disturbance } from "#apiserver/faults.ts";
import type { InterceptedRequest, Interceptor } from "#apiserver/interception.ts";
import { type JsonObject, stringifyJson } from "#apiserver/json.ts";
import { protobufToJson } from "#apiserver/operations/protobuf.ts";
import { parseResourcePath } from "#apiserver/resource-path.ts";
import type { Scheduler } from "#apiserver/scheduler.ts";
import { StatusError } from "#apiserver/status-error.ts";

export interface HostedCluster {
  readonly cluster: Cluster;
  readonly scheduler: Scheduler;
  /** Called for tokens that the cluster does not know itself. */
  readonly authenticator: Authenticator | undefined;
}

/** One finished request. Watches are recorded when they begin. */
export interface RequestRecord {
  readonly cluster: string;
  /** In milliseconds of the host's clock. */
  readonly at: number;
  readonly method: string;
  /** The path below the cluster, percent-encoded. */
  readonly path: string;
  readonly query: string;
  readonly userAgent?: string;
  /** The status that the caller received; 0 where the connection was cut. */
  readonly status: number;
  /** The status that the server computed, even if the caller received another one; 0 where the server did not run. */
  readonly result: number;
  readonly dryRun: boolean;
  /** `group/Kind namespace/name`; set where the path names an object. */
  readonly object?: string;
}

export interface ListenerOptions {
  readonly cluster: (name: string) => HostedCluster | undefined;
  readonly clock: () => number;
  readonly interceptor: () => Interceptor | undefined;
  readonly record: (record: RequestRecord) => void;
}

const maxBodyBytes = 3 * 1024 * 1024;

/** Answers `/clusters/NAME/...` with the API server of that cluster. */
export function requestListener(
  options: ListenerOptions,
): (request: IncomingMessage, response: ServerResponse) => void {
  return (request, response) => {
    answer(options, request, response).catch((error: unknown) => {
      if (response.headersSent || response.destroyed) {
        response.destroy();
        return;
      }
      const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
      const failure = new StatusError(500, `Internal error occurred: ${message}`, { reason: "InternalError" });
      send(response, { status: 500, contentType: "application/json", body: failure.body(), warnings: [] });
    });
  };
}

async function answer(options: ListenerOptions, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = request.url ?? "/";
  const mark = url.indexOf("?");
  const whole = mark < 0 ? url : url.slice(0, mark);
  const query = mark < 0 ? "" : url.slice(mark + 1);
  const match = /^\/clusters\/([^/]+)(\/.*)?$/.exec(whole);
  const name = decodedName(match?.[1] ?? "");
  const path = match?.[2] ?? "/";
  const hosted = options.cluster(name);
  const method = request.method ?? "GET";
  const body = await readBody(request);
  if (hosted === undefined) {
    send(response, {
      status: 404,
      contentType: "text/plain; charset=utf-8",
      body: "404 page not found\n",
      warnings: [],
    });
    return;
  }
  const seen = { cluster: name, method, path };
  const record = recorder(options, { hosted, seen, query, userAgent: request.headers["user-agent"] });
  if (await intercepted(options, { ...seen, phase: "before" }, { response, record })) return;
  const user = await authenticate(hosted.cluster, request.headers.authorization, hosted.authenticator);
  hosted.scheduler.runDue();
  const result =
    body === undefined ? tooLarge() : handleRequest(hosted.cluster, apiRequest(request, { path, query, body, user }));
  const { status } = result;
  if (await intercepted(options, { ...seen, phase: "after" }, { response, record: (sent) => record(sent, status) }))
    return;
  record(status, status);
  if (result.stream === undefined) send(response, result);
  else stream(response, result.stream);
}

/** A name that is not percent-encoded UTF-8 belongs to no cluster. */
function decodedName(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

function tooLarge(): ApiResponse {
  const error = new StatusError(413, `Request entity too large: limit is ${maxBodyBytes}`, {
    reason: "RequestEntityTooLarge",
  });
  return { status: 413, contentType: "application/json", body: error.body(), warnings: [] };
}

function apiRequest(
  request: IncomingMessage,
  parts: { readonly path: string; readonly query: string; readonly body: string; readonly user: User | undefined },
): ApiRequest {
  const { headers } = request;
  return {
    method: request.method ?? "GET",
    path: parts.path,
    query: new URLSearchParams(parts.query),
    host: headers.host ?? "",
    accept: headers.accept,
    contentType: headers["content-type"],
    userAgent: headers["user-agent"] ?? "",
    user: parts.user,
    headers: request.headersDistinct,
    body: parts.body,
  };
}

const protobufType = "application/vnd.kubernetes.protobuf";

/**
 * The body as text; undefined when it is too large. Protobuf of a known type becomes JSON, and so does its content
 * type.
 */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  let chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    // The rest is read and dropped, because a client may read no answer before it has sent everything.
    if (bytes <= maxBodyBytes) chunks.push(chunk);
    else chunks = [];
  }
  if (bytes > maxBodyBytes) return undefined;
  const body = Buffer.concat(chunks);
  const json = request.headers["content-type"] === protobufType ? protobufToJson(body) : undefined;
  if (json !== undefined) request.headers["content-type"] = "application/json";
  return json ?? body.toString("utf8");
}

function recorder(
  options: ListenerOptions,
  about: {
    readonly hosted: HostedCluster;
    readonly seen: { readonly cluster: string; readonly method: string; readonly path: string };
    readonly query: string;
    readonly userAgent: string | undefined;
  },
): (status: number, result?: number) => void {
  const object = objectAt(about.hosted.cluster, about.seen.path);
  return (status, result = 0) =>
    options.record({
      ...about.seen,
      at: options.clock(),
      query: about.query,
      ...(about.userAgent === undefined ? {} : { userAgent: about.userAgent }),
      status,
      result,
      dryRun: /(^|&)dryRun=All(&|$)/.test(about.query),
      ...(object === undefined ? {} : { object }),
    });
}

function objectAt(cluster: Cluster, path: string): string | undefined {
  const parsed = parseResourcePath(path);
  if (parsed === undefined || parsed.name === "") return undefined;
  const kind = cluster.kindOf(parsed.group, parsed.version, parsed.plural);
  return `${parsed.group}/${kind?.kind ?? parsed.plural} ${parsed.namespace ?? ""}/${parsed.name}`;
}

/** True when an interceptor has answered the request or cut its connection. */
async function intercepted(
  options: ListenerOptions,
  request: InterceptedRequest,
  out: { readonly response: ServerResponse; readonly record: (status: number) => void },
): Promise<boolean> {
  const decision = await decide(options, request);
  if (decision === "pass") return false;
  if (decision === "hold") {
    out.record(0);
    const release = options.cluster(request.cluster)?.cluster.faults.hold(() => out.response.destroy());
    out.response.once("close", () => release?.());
    return true;
  }
  if (decision === "reset") {
    out.record(0);
    out.response.destroy();
    return true;
  }
  out.record(decision.status);
  const body = typeof decision.body === "string" ? decision.body : stringifyJson(decision.body);
  out.response.writeHead(decision.status, { "content-type": "application/json", ...decision.headers }).end(body);
  return true;
}

/** The cluster's faults decide first. The interceptor sees only requests that they let pass. */
async function decide(options: ListenerOptions, request: InterceptedRequest): Promise<Disturbance> {
  const faulty = await options.cluster(request.cluster)?.cluster.faults.disturb(request);
  if (faulty !== undefined && faulty !== "pass") return faulty;
  return (await options.interceptor()?.(request)) ?? "pass";
}

function warningHeader(text: string): string {
  return `299 - "${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}

function send(response: ServerResponse, result: ApiResponse): void {
  const text = typeof result.body === "string" ? result.body : encode(result.body, result.contentType);
  response.writeHead(result.status, {
    "content-type": result.contentType,
    "content-length": Buffer.byteLength(text),
    ...(result.warnings.length === 0 ? {} : { warning: result.warnings.map(warningHeader).join(", ") }),
    ...result.headers,
  });
  response.end(text);
}

function encode(body: JsonObject, contentType: string): string {
  if (contentType === "application/yaml") return dump(JSON.parse(stringifyJson(body)), { sortKeys: true });
  try {
    return `${JSON.stringify(body)}\n`;
  } catch {
    // JSON.stringify is faster and throws on a bigint.
    return `${stringifyJson(body)}\n`;
  }
}

function stream(response: ServerResponse, begin: NonNullable<ApiResponse["stream"]>): void {
  response.writeHead(200, { "content-type": "application/json" });
  response.flushHeaders();
  const stop = begin({
    write(line) {
      response.write(line);
    },
    end() {
      response.end();
    },
  });
  response.on("close", stop);
}
