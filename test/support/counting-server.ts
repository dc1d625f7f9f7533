/** Servers with certificates of one authority, which count what clients send to them. */
import { type AddressInfo, createServer as createTcpServer, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { generate } from "selfsigned";
import type { TlsCertificate } from "#local/base/tls-certificate.ts";

export interface CountingServer {
  readonly port: number;
  /** The connections that clients opened. */
  connections(): number;
  /** What clients sent: inside of TLS, decrypted; without TLS, as it came. */
  received(): string;
  stop(): Promise<void>;
}

/** A certificate by an authority, for names and for 127.0.0.1. */
export async function certificateBy(authority: TlsCertificate, names: readonly string[]): Promise<TlsCertificate> {
  const { private: key, cert } = await generate([{ name: "commonName", value: "server" }], {
    ...{ keyType: "ec", curve: "P-256", algorithm: "sha256", ca: authority },
    extensions: [
      { name: "basicConstraints", cA: false, critical: true },
      { name: "extKeyUsage", serverAuth: true },
      {
        name: "subjectAltName",
        altNames: [...names.map((value) => ({ type: 2, value }) as const), { type: 7, ip: "127.0.0.1" }],
      },
    ],
  });
  return { key, cert };
}

/** It answers each piece that it receives with `answer` as JSON. Without a certificate it speaks no TLS. */
export async function startCountingServer(
  answer: unknown,
  tls?: TlsCertificate,
  { address = "127.0.0.1", port = 0 }: { readonly address?: string; readonly port?: number } = {},
): Promise<CountingServer> {
  const sockets = new Set<Socket>();
  let received = "";
  let connections = 0;
  const body = JSON.stringify(answer);
  const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n`;
  const serve = (socket: Socket) => {
    socket.on("error", () => {});
    socket.on("data", (chunk) => {
      received += chunk.toString("latin1");
      socket.write(`${head}${body}`);
    });
  };
  const server = tls === undefined ? createTcpServer(serve) : createTlsServer({ ...tls }, serve);
  server.on("tlsClientError", () => {});
  server.on("connection", (socket: Socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(port, address, resolve));
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => connections,
    received: () => received,
    stop: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy();
        server.close(() => resolve());
      }),
  };
}
