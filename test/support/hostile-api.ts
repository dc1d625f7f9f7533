/** An API server that answers honestly, except for the requests that a test takes over. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, request as sendRequest } from "node:https";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ClusterConnection } from "@starling/embedded-apiserver";
import { listenOnLoopback } from "#local/base/loopback-server.ts";
import { createTlsCertificate } from "#local/base/tls-certificate.ts";

/** @returns false where the honest server should answer. */
export type Attack = (request: IncomingMessage, response: ServerResponse) => boolean;

type Address = Pick<ClusterConnection, "server" | "caData" | "token">;

export interface HostileApi extends Address {
  attack(attack: Attack | undefined): void;
  /** The requests since the last `clear`, such as `GET /api/v1/...`, with their query. */
  requests(): readonly string[];
  /** The bytes sent to clients since the last `clear`. */
  sentBytes(): number;
  clear(): void;
  stop(): Promise<void>;
}

export async function startHostileApi(honest: Address): Promise<HostileApi> {
  const tls = await createTlsCertificate(["127.0.0.1"]);
  const asked: string[] = [];
  let sent = 0;
  let attack: Attack | undefined;
  const server = createServer({ ...tls, requestTimeout: 0, keepAliveTimeout: 60_000 }, (request, response) => {
    asked.push(`${request.method} ${request.url}`);
    const before = request.socket.bytesWritten;
    response.once("close", () => {
      sent += request.socket.bytesWritten - before;
    });
    response.on("error", () => {});
    if (attack?.(request, response) !== true) forward(honest, request, response);
  });
  server.on("secureConnection", (socket) => socket.on("error", () => {}));
  const { origin, stop } = await listenOnLoopback(server);
  return {
    server: origin,
    caData: Buffer.from(tls.cert).toString("base64"),
    token: honest.token,
    attack(next) {
      attack = next;
    },
    requests: () => asked,
    sentBytes: () => sent,
    clear() {
      asked.length = 0;
      sent = 0;
    },
    stop,
  };
}

function forward(honest: Address, request: IncomingMessage, response: ServerResponse): void {
  const { pathname, origin } = new URL(honest.server);
  const path = `${pathname.replace(/\/$/, "")}${request.url}`;
  const ca = Buffer.from(honest.caData, "base64");
  const headers = { ...request.headers, host: new URL(origin).host };
  const asked = sendRequest(`${origin}${path}`, { method: request.method ?? "GET", headers, ca }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
  });
  asked.on("error", () => response.destroy());
  request.pipe(asked);
}

/** Writes pieces as fast as the client reads, until the client closes. */
export async function pour(response: ServerResponse, pieces: Iterable<string | Uint8Array>): Promise<void> {
  try {
    await pipeline(Readable.from(pieces), response);
  } catch (error) {
    if (!response.destroyed) throw error;
  }
}

export function answerJson(response: ServerResponse, text: string, status = 200): boolean {
  response.writeHead(status, { "content-type": "application/json" }).end(text);
  return true;
}
