import { once } from "node:events";
import { request } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { PeerCertificate, TLSSocket } from "node:tls";
import { generate } from "selfsigned";

export interface Pair {
  readonly key: string;
  readonly cert: string;
}

const dayMs = 86_400_000;
const algorithm = { keyType: "ec", curve: "P-256", algorithm: "sha256" } as const;

/** An authority of its own. */
export async function newAuthority(name: string): Promise<Pair> {
  const { private: key, cert } = await generate([{ name: "commonName", value: name }], {
    ...algorithm,
    notAfterDate: new Date(Date.now() + dayMs),
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", digitalSignature: true, keyCertSign: true, critical: true },
    ],
  });
  return { key, cert };
}

export interface CertificateOptions {
  readonly ca: Pair;
  /** Days from now. The default is 1. */
  readonly endsInDays?: number;
}

/** A certificate of an authority, for 127.0.0.1 as a server and for any client. */
export async function newCertificate(name: string, { ca, endsInDays = 1 }: CertificateOptions): Promise<Pair> {
  const { private: key, cert } = await generate([{ name: "commonName", value: name }], {
    ...algorithm,
    ca,
    notBeforeDate: new Date(Date.now() - 30 * dayMs),
    notAfterDate: new Date(Date.now() + endsInDays * dayMs),
    extensions: [
      { name: "basicConstraints", cA: false, critical: true },
      { name: "extKeyUsage", serverAuth: true, clientAuth: true },
      { name: "subjectAltName", altNames: [{ type: 7, ip: "127.0.0.1" }] },
    ],
  });
  return { key, cert };
}

export interface MutualTlsFront {
  /** `https://127.0.0.1:PORT` */
  readonly url: string;
  /** The authority of the client's certificate for each request: `-` without one, `?` for one that is not let in. */
  readonly clients: readonly string[];
  stop(): Promise<void>;
}

interface TlsFrontOptions {
  readonly ca: Pair;
  readonly server: Pair;
  /** `any`: also those without a certificate. Default: `known`. */
  readonly clients?: "known" | "any";
}

/** Serves HTTPS before a server on loopback, and lets in only clients with a certificate of the authority. */
export async function startMutualTlsFront(
  target: () => string,
  { ca, server: pair, clients: letIn = "known" }: TlsFrontOptions,
): Promise<MutualTlsFront> {
  const clients: string[] = [];
  const sockets = new Set<TLSSocket>();
  const server = createServer(
    { ...pair, ca: ca.cert, requestCert: true, rejectUnauthorized: false },
    (incoming, out) => {
      const socket = incoming.socket as TLSSocket;
      const { issuer } = socket.getPeerCertificate() as Partial<PeerCertificate>;
      const name = issuer === undefined ? "-" : socket.authorized ? String(issuer.CN) : "?";
      clients.push(name);
      if (letIn === "known" && !socket.authorized) return void out.writeHead(403).end("no certificate");
      const { method, headers, url = "/" } = incoming;
      const onward = request(`${target()}${url}`, { ...(method === undefined ? {} : { method }), headers });
      onward.on("response", (answer) => {
        out.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.pipe(out);
      });
      onward.on("error", () => out.destroy());
      incoming.pipe(onward);
    },
  );
  server.on("secureConnection", (socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("close", () => sockets.delete(socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `https://127.0.0.1:${port}`,
    clients,
    async stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
