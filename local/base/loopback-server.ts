import { once } from "node:events";
import { createServer, type Server, type ServerOptions } from "node:http";
import { createServer as createTlsServer, Server as TlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { type Listener, onlyFromHere } from "#local/base/from-here.ts";
import type { TlsCertificate } from "#local/base/tls-certificate.ts";

export interface LoopbackServer {
  readonly port: number;
  /** For example `http://127.0.0.1:8080`. */
  readonly origin: string;
  /** Ends every connection, also one without a request and one in its TLS handshake. */
  stop(): Promise<void>;
}

export interface ServingOptions {
  /** The default takes any free port. */
  readonly port?: number;
  /** Serves https with this certificate. The default is http. */
  readonly tls?: TlsCertificate;
  /** Accepted hosts besides those of this machine. */
  readonly hosts?: RegExp;
  readonly server?: Pick<ServerOptions, "keepAliveTimeout">;
}

/** Serves programs of this machine on 127.0.0.1 and refuses web pages. @throws Error when the port is taken. */
export function serveOnLoopback(listener: Listener, options: ServingOptions = {}): Promise<LoopbackServer> {
  const { port, tls, hosts, server = {} } = options;
  const guarded = onlyFromHere(listener, hosts);
  return listenOnLoopback(
    tls === undefined ? createServer(server, guarded) : createTlsServer({ ...server, ...tls }, guarded),
    port,
  );
}

/**
 * Makes a server listen on 127.0.0.1. @param port - the default takes any free port. @throws Error when the port is
 * taken.
 */
export async function listenOnLoopback(server: Server | TlsServer, port = 0): Promise<LoopbackServer> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const address = server.address() as AddressInfo;
  return {
    port: address.port,
    origin: `${server instanceof TlsServer ? "https" : "http"}://127.0.0.1:${address.port}`,
    async stop() {
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
