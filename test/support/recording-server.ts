import { createServer, type Server } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { createTlsCertificate } from "#local/base/tls-certificate.ts";

export interface RecordedRequest {
  readonly method: string;
  /** Path and query as received. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

export interface RecordedReply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** A string is sent unchanged, another value as JSON. `drop` closes the connection instead. */
  readonly body?: unknown;
  readonly drop?: true;
}

export interface RecordingServer {
  readonly url: string;
  /** PEM in base64, as from EKS. */
  readonly caData: string;
  readonly requests: readonly RecordedRequest[];
  /** The number of accepted TLS connections. */
  connections(): number;
  /** The number of accepted connections that are still open. */
  open(): number;
  /** The number of accepted connections that resumed a TLS session. */
  resumed(): number;
  stop(): Promise<void>;
}

/** A TLS server on 127.0.0.1 that records requests and answers with the result of `reply`. */
export async function startRecordingServer(
  reply: (request: RecordedRequest) => RecordedReply,
): Promise<RecordingServer> {
  const tls = await createTlsCertificate(["api.example.com"]);
  const requests: RecordedRequest[] = [];
  const sockets = new Set<Socket>();
  let connections = 0;
  let resumed = 0;
  const server: Server = createServer({ ...tls }, (incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => {
      const request: RecordedRequest = {
        method: incoming.method ?? "",
        url: incoming.url ?? "",
        headers: incoming.headers,
        body: Buffer.concat(chunks).toString(),
      };
      requests.push(request);
      const { status = 200, headers = {}, body = {}, drop } = reply(request);
      if (drop) return void incoming.socket.destroy();
      const text = typeof body === "string" ? body : JSON.stringify(body);
      response.writeHead(status, { "content-type": "application/json", ...headers }).end(text);
    });
  });
  server.on("secureConnection", (socket) => {
    connections += 1;
    if (socket.isSessionReused()) resumed += 1;
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `https://127.0.0.1:${port}`,
    caData: Buffer.from(tls.cert).toString("base64"),
    requests,
    connections: () => connections,
    open: () => sockets.size,
    resumed: () => resumed,
    stop: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy();
        server.close(() => resolve());
      }),
  };
}
