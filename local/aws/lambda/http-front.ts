import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { AccessKey, Principals } from "#local/aws/iam/principals.ts";
import { verifySigV4 } from "#local/aws/iam/sigv4-verifier.ts";
import { type ArrivedRequest, httpApiEvent } from "#local/aws/lambda/http-api-event.ts";
import { createRouter, type HttpRoute, type RouteMatch } from "#local/aws/lambda/http-routes.ts";
import { localRegion } from "#local/aws/lambda/lambda-context.ts";
import { serveOnLoopback } from "#local/base/loopback-server.ts";
import { readBytesUpTo } from "#local/base/read-bytes.ts";

export interface HttpFrontOptions {
  readonly routes: readonly HttpRoute[];
  /** The principals that may sign requests of `iam` routes. */
  readonly principals: Pick<Principals, "find">;
  readonly port?: number;
  readonly region?: string;
  readonly now?: () => Date;
  /** Called for refusals and errors whose reason the answer does not contain. */
  readonly onProblem?: (problem: { readonly routeKey: string; readonly problem: unknown }) => void;
}

export interface HttpFront {
  /** For example `http://127.0.0.1:8080`. */
  readonly url: string;
  stop(): Promise<void>;
}

interface Answer {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  readonly body: string | Buffer;
}

/** API Gateway's limit for the payload of a request. */
const maxBodyBytes = 10 * 1024 * 1024;
/** Lambda's limit for a synchronous response. */
const maxResponseBytes = 6 * 1024 * 1024;

/**
 * An API Gateway HTTP API on 127.0.0.1 that invokes functions. IAM routes require a SigV4 signature for `execute-api`.
 */
export async function startHttpFront(options: HttpFrontOptions): Promise<HttpFront> {
  const { principals, region = localRegion, now = () => new Date(), onProblem } = options;
  const route = createRouter(options.routes);
  const running = new AbortController();

  async function answer(request: IncomingMessage): Promise<Answer> {
    const { method = "GET", url = "/", headers } = request;
    const queryAt = url.indexOf("?");
    const wirePath = queryAt < 0 ? url : url.slice(0, queryAt);
    const path = decodePath(wirePath);
    const match = path === undefined ? undefined : route(method, path);
    if (path === undefined || match === undefined) return message(404, "Not Found");
    const rawQueryString = queryAt < 0 ? "" : url.slice(queryAt + 1);
    const readBody = () => readBytesUpTo(maxBodyBytes, request);
    const arrived = (body: Buffer) => ({ method, path, rawQueryString, headers, body, at: now() });
    if (match.route.authorization === "none") {
      const body = await readBody();
      return body === undefined ? tooLarge : invoke(arrived(body), match, undefined);
    }
    const signed = { method, url, headers, body: readBody };
    const verdict = await verifySigV4(signed, { principals, region, service: "execute-api", now });
    if (verdict.verdict === "genuine") {
      if (mayInvoke(verdict.accessKey, `${method}${path}`))
        return invoke(arrived(verdict.body), match, verdict.accessKey);
      onProblem?.({
        routeKey: match.route.routeKey,
        problem: `No policy of ${verdict.accessKey.principalArn} allows it`,
      });
      return message(403, "Forbidden");
    }
    onProblem?.({ routeKey: match.route.routeKey, problem: verdict.reason });
    return verdict.fault === "too large" ? tooLarge : message(403, "Forbidden");
  }

  async function invoke(request: ArrivedRequest, match: RouteMatch, accessKey: AccessKey | undefined): Promise<Answer> {
    const event = httpApiEvent(request, match, accessKey);
    const outcome = await match.route.lambda.invoke({ event, killed: running.signal });
    const { routeKey } = match.route;
    if (outcome.outcome === "returned") {
      const given = readResult(outcome.result);
      if (given !== undefined) return given;
      onProblem?.({ routeKey, problem: `The response is malformed or larger than ${maxResponseBytes} bytes` });
      return message(500, "Internal Server Error");
    }
    onProblem?.({ routeKey, problem: outcome.outcome === "failed" ? outcome.error : outcome.outcome });
    return outcome.outcome === "failed" ? message(500, "Internal Server Error") : message(503, "Service Unavailable");
  }

  const listening = await serveOnLoopback(
    (request, response) => {
      answer(request).then(
        (given) => send(response, given),
        (problem) => {
          onProblem?.({ routeKey: "", problem });
          send(response, message(500, "Internal Server Error"));
        },
      );
    },
    options.port === undefined ? {} : { port: options.port },
  );
  return {
    url: listening.origin,
    stop() {
      running.abort();
      return listening.stop();
    },
  };
}

function send(response: ServerResponse, { status, headers, body }: Answer): void {
  if (response.destroyed) return;
  response.writeHead(status, { ...headers, "content-length": Buffer.byteLength(body) });
  response.end(body);
}

/** Compares a request with the resources of a statement, as IAM does. */
function mayInvoke({ invokes }: AccessKey, request: string): boolean {
  if (invokes === undefined) return true;
  return invokes.some((pattern) => {
    const literal = pattern.split("*").map((part) => RegExp.escape(part));
    return new RegExp(`^${literal.join(".*")}$`, "s").test(request);
  });
}

function message(status: number, text: string): Answer {
  return { status, headers: { "content-type": "application/json" }, body: JSON.stringify({ message: text }) };
}

const tooLarge = message(413, "Request Entity Too Large");

function decodePath(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}

interface ProxyResult {
  readonly statusCode?: unknown;
  readonly headers?: Readonly<Record<string, string | number | boolean>>;
  readonly cookies?: readonly string[];
  readonly body?: unknown;
  readonly isBase64Encoded?: boolean;
}

/** The answer that API Gateway infers for format 2.0. A result without a status code is the JSON body of a 200. */
function readResult(result: unknown): Answer | undefined {
  if (Buffer.byteLength(JSON.stringify(result) ?? "") > maxResponseBytes) return undefined;
  if (typeof result !== "object" || result === null || !("statusCode" in result)) {
    return { status: 200, headers: { "content-type": "application/json" }, body: JSON.stringify(result) ?? "" };
  }
  const { statusCode, headers = {}, cookies, body = "", isBase64Encoded } = result as ProxyResult;
  const status = Number(statusCode);
  if (!Number.isInteger(status) || status < 100 || status > 599 || typeof body !== "string") return undefined;
  const named = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]);
  return {
    status,
    headers: {
      "content-type": "text/plain;charset=UTF-8",
      ...Object.fromEntries(named),
      ...(cookies === undefined ? {} : { "set-cookie": [...cookies] }),
    },
    body: isBase64Encoded === true ? Buffer.from(body, "base64") : body,
  };
}
