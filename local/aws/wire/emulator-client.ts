import { Agent, request as httpRequest, type IncomingHttpHeaders, type OutgoingHttpHeaders } from "node:http";
import { readBytes } from "#local/base/read-bytes.ts";

export interface HttpRequest {
  readonly method: string;
  /** Path and query as sent. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export interface HttpReply {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  readonly body: Buffer;
}

export interface EmulatorClient {
  send(request: HttpRequest): Promise<HttpReply>;
  close(): void;
}

/** Headers of one connection (RFC 9110 section 7.6.1), and headers that are set anew for the next connection. */
const connectionHeaders = new Set([
  "connection",
  "keep-alive",
  "transfer-encoding",
  "expect",
  "host",
  "content-length",
]);

/** Sends requests to an emulator over kept-alive connections. */
export function createEmulatorClient(endpoint: string): EmulatorClient {
  const target = new URL(endpoint);
  const agent = new Agent({ keepAlive: true });

  function attempt(request: HttpRequest): Promise<HttpReply> {
    return new Promise((resolve, reject) => {
      const outgoing = httpRequest({
        agent,
        hostname: target.hostname,
        port: target.port,
        method: request.method,
        path: request.path,
        headers: forwardedHeaders(request, target.host),
      });
      outgoing.on("error", (error: NodeJS.ErrnoException) => {
        const stale = outgoing.reusedSocket && error.code === "ECONNRESET";
        reject(stale ? new StaleConnection("The emulator closed an idle connection", { cause: error }) : error);
      });
      outgoing.on("response", (incoming) => {
        readBytes(incoming).then((body) => {
          const headers = withoutConnectionHeaders(incoming.headers);
          const length = request.method === "HEAD" ? incoming.headers["content-length"] : `${body.length}`;
          if (length !== undefined) headers["content-length"] = length;
          resolve({ status: incoming.statusCode ?? 502, headers, body });
        }, reject);
      });
      outgoing.end(request.body);
    });
  }

  return {
    async send(request) {
      try {
        return await attempt(request);
      } catch (error) {
        if (error instanceof StaleConnection) return await attempt(request);
        throw error;
      }
    },
    close: () => agent.destroy(),
  };
}

/**
 * The emulator closed an idle connection while a request was starting. The request had no effect and is safe to repeat.
 */
class StaleConnection extends Error {}

function forwardedHeaders({ headers, body }: HttpRequest, host: string): OutgoingHttpHeaders {
  const forwarded = withoutConnectionHeaders(headers);
  forwarded.host = host;
  forwarded["content-length"] = body.length;
  return forwarded;
}

export function withoutConnectionHeaders(headers: OutgoingHttpHeaders): OutgoingHttpHeaders {
  const kept: OutgoingHttpHeaders = {};
  for (const name in headers) {
    if (!connectionHeaders.has(name)) kept[name] = headers[name];
  }
  return kept;
}
