import type { ClientRequest } from "node:http";
import { Agent, request as sendRequest } from "node:https";
import type { Socket } from "node:net";
import { createSecureContext, type TLSSocket } from "node:tls";
import { AnswerBody } from "#shared/adapters/kube/answer-budget.ts";
import {
  BodyInPieces,
  BodyTooLarge,
  ConnectionClosed,
  ConnectTimeout,
  NoAnswer,
  networkError,
  ProtocolSwitched,
  timeoutCode,
} from "#shared/adapters/kube/transport-errors.ts";
import {
  type AddressRules,
  clusterAddresses,
  guardedLookup,
  refuseLiteralAddress,
} from "#shared/adapters/net/address-rules.ts";
import { defined } from "#shared/base/defined.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { isOwnFault } from "#shared/base/own-fault.ts";
import { starlingVersion } from "#shared/base/starling-version.ts";
import { readAuthority } from "#shared/kube/certificate-authority.ts";

/**
 * Returns the bearer token for a cluster. With `refresh`, the last token was refused and must not be returned again.
 */
export type TokenProvider = (options: { readonly refresh: boolean }) => Promise<string>;

export interface KubeEndpoint {
  /** `https://host[:port][/prefix]`. */
  readonly server: string;
  /** The certificate authority, as base64 of PEM, as in EKS and kubeconfigs. Default: the system's. */
  readonly caData?: string;
  /** The name in the server's certificate when it is not the host's name. */
  readonly tlsServerName?: string;
  readonly credentials:
    | { readonly token: TokenProvider }
    | { readonly clientCertificate: { readonly certData: string; readonly keyData: string } };
  /** The limit of concurrent requests; further requests wait. */
  readonly maxSockets?: number;
  /** The addresses that the server may have. Default: those of `clusterAddresses`. */
  readonly addresses?: AddressRules;
  /** How long a connection may take until TLS is established. */
  readonly connectTimeoutMs?: number;
  /** Called for requests that reached no server, or a wrong one: problems of names, routes or certificates. */
  readonly onUnreachable?: () => void;
}

export interface TransportRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** The path below the server's prefix, with percent-encoded names and the query. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string;
  /** True when answers may contain values of a Secret. */
  readonly secret?: boolean;
  /** How long to wait for the answer, in milliseconds. */
  readonly timeoutMs: number;
  readonly maxBodyBytes: number;
  /** Called when a connection and a token exist, before anything is sent. An error that it throws ends the request. */
  readonly permit?: () => Promise<void>;
}

export interface TransportAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

/** The limit of an answer outside 2xx. Only the first kilobytes of a Status are used. */
const maxRefusalBytes = 1024 * 1024;
/** The limit of pieces of one answer. Each piece costs time, and honest pieces have a kilobyte or more. */
const maxPieces = 100_000;
/** Each connection costs a TLS handshake. More connections do not speed up an ordinary Sync. */
const defaultMaxSockets = 8;
/**
 * A private endpoint without a route drops connections instead of refusing them. Detecting this must not take as long
 * as waiting for a slow answer.
 */
const defaultConnectTimeoutMs = 10_000;

/**
 * HTTPS to one API server over kept connections. An answer of any status is an answer. A `KubeError` means that there
 * was no answer, or a larger one than allowed. Any other error means that the server was not asked. A 401 is retried
 * once with a new token.
 */
export class KubeTransport {
  readonly #base: URL;
  readonly #agent: Agent;
  readonly #place: { readonly host: string; readonly port: number; readonly prefix: string };
  readonly #endpoint: KubeEndpoint;
  readonly #addresses: AddressRules;
  #isAddressAllowed = false;

  constructor(endpoint: KubeEndpoint) {
    this.#endpoint = endpoint;
    this.#addresses = endpoint.addresses ?? clusterAddresses;
    this.#base = new URL(endpoint.server);
    if (this.#base.protocol !== "https:") {
      throw new TypeError(`the server of a cluster must be an https URL, got ${JSON.stringify(endpoint.server)}`);
    }
    this.#agent = new Agent({
      keepAlive: true,
      maxSockets: endpoint.maxSockets ?? defaultMaxSockets,
      scheduling: "lifo",
      lookup: guardedLookup(this.#addresses),
      // The context is made once. From certificates, each connection would make its own, and each request a new key in
      // the agent.
      secureContext: createSecureContext({
        ...(endpoint.caData === undefined ? {} : { ca: authorityOf(endpoint.server, endpoint.caData) }),
        ...certificateOptions(endpoint),
      }),
      ...defined({ servername: endpoint.tlsServerName }),
    });
    this.#place = {
      host: this.#base.hostname.replace(/^\[|\]$/g, ""),
      port: this.#base.port === "" ? 443 : Number(this.#base.port),
      prefix: this.#base.pathname.replace(/\/$/, ""),
    };
  }

  async send(request: TransportRequest): Promise<TransportAnswer> {
    const answer = await this.#sendOnce(request, { refresh: false });
    if (answer.status !== 401 || !("token" in this.#endpoint.credentials)) return answer;
    return this.#sendOnce(request, { refresh: true });
  }

  /** Closes every connection and ends its requests. The next request opens a new one. */
  close(): void {
    for (const sockets of Object.values(this.#agent.sockets)) {
      for (const socket of sockets ?? []) resetAtEnd(socket);
    }
    this.#agent.destroy();
  }

  /** When one connection is silent, others of the same age are silent, too. Trying each would take minutes. */
  #closeIdle(): void {
    for (const sockets of Object.values(this.#agent.freeSockets)) {
      for (const socket of sockets ?? []) socket.destroy();
    }
  }

  async #sendOnce(request: TransportRequest, token: { readonly refresh: boolean }): Promise<TransportAnswer> {
    const { credentials } = this.#endpoint;
    // A literal address does not change. A name is checked for each connection.
    if (!this.#isAddressAllowed) refuseLiteralAddress(this.#addresses, this.#base);
    this.#isAddressAllowed = true;
    const authorization = "token" in credentials ? { authorization: `Bearer ${await credentials.token(token)}` } : {};
    const headers = {
      accept: "application/json",
      "user-agent": `starling/${starlingVersion}`,
      ...request.headers,
      ...authorization,
      ...(request.body === undefined ? {} : { "content-length": String(Buffer.byteLength(request.body)) }),
    };
    return this.#exchange(request, headers);
  }

  #exchange(request: TransportRequest, headers: Record<string, string | string[]>): Promise<TransportAnswer> {
    const { host, port, prefix } = this.#place;
    return new Promise((resolve, reject) => {
      let isOver = false;
      const end = (deliver: () => void) => {
        clearTimeout(timer);
        if (!isOver) deliver();
        isOver = true;
      };
      const refuse = (cause: unknown) => end(() => reject(cause));
      const fail = (cause: unknown) => {
        if (isOver) return;
        if (cause instanceof StarlingError || isOwnFault(cause)) return refuse(cause);
        const { method, path, secret = false } = request;
        const error = networkError({ method, path, secret }, cause);
        if (error.class === "unreachable") this.#endpoint.onUnreachable?.();
        if (error.reason === timeoutCode) this.#closeIdle();
        refuse(error);
      };
      let answered = false;
      const sent = sendRequest(
        {
          agent: this.#agent,
          host,
          port,
          path: `${prefix}${request.path}`,
          method: request.method,
          headers,
        },
        (response) => {
          answered = true;
          const { statusCode: status = 0, headers } = response;
          const answer = (text: string) => end(() => resolve({ status, headers, text }));
          const body = new AnswerBody();
          const refused = status >= 300;
          const maxBytes = refused ? Math.min(maxRefusalBytes, request.maxBodyBytes) : request.maxBodyBytes;
          response.on("data", (chunk: Buffer) => {
            if (body.add(chunk) <= maxBytes && body.pieces <= maxPieces) return;
            // The status of a refusal is enough. A part of any other answer is useless.
            if (refused) answer("");
            response.destroy(body.pieces > maxPieces ? new BodyInPieces(maxPieces) : new BodyTooLarge(maxBytes));
          });
          response.on("error", fail);
          response.on("end", () => answer(body.text()));
        },
      );
      // A signal would do the same, but would take a fifth of the time of a request.
      const timer = setTimeout(
        () => {
          fail(new NoAnswer(request.timeoutMs));
          if (sent.socket !== null) resetAtEnd(sent.socket);
          sent.destroy();
        },
        Math.max(1, request.timeoutMs),
      );
      timer.unref();
      sent.on("error", fail);
      // A connection that switches protocols ends without an error and without an answer.
      sent.on("upgrade", (response, socket) => {
        socket.destroy();
        fail(new ProtocolSwitched(String(response.headers.upgrade)));
      });
      sent.on("close", () => {
        if (!answered) fail(new ConnectionClosed());
      });
      sent.on("socket", (socket) => limitConnecting(socket as TLSSocket, this.#endpoint));
      sendPermitted(sent, request, refuse);
    });
  }
}

interface TcpHandle {
  close(closed: () => void): void;
  /** @returns an error number, or 0. */
  reset?(closed: () => void): number;
}

/**
 * Makes the end of a connection a reset. After an ordinary end, the kernel would continue to send what waits in its
 * buffer: when a network works again, the server would execute a request that was given up minutes before, perhaps
 * after newer ones. Node resets plain sockets only, so this uses the TCP handle below TLS. Before the connection is
 * established, nothing waits.
 */
function resetAtEnd(socket: Socket): void {
  const tcp = (socket as Socket & { readonly _handle?: { readonly _parent?: TcpHandle } })._handle?._parent;
  if (socket.connecting || tcp?.reset === undefined) return;
  const { close } = tcp;
  tcp.close = (closed) => {
    if (tcp.reset?.(closed) !== 0) close.call(tcp, closed);
  };
}

/**
 * Waits for a connection before it asks for the permit. A request may wait as long as others take, and an earlier
 * permit may not be valid any more.
 */
function sendPermitted(sent: ClientRequest, request: TransportRequest, refuse: (error: unknown) => void): void {
  const { permit, body } = request;
  if (permit === undefined) {
    sent.end(body);
    return;
  }
  const ask = () =>
    permit().then(
      () => {
        if (!sent.destroyed) sent.end(body);
      },
      (error: unknown) => {
        refuse(error);
        sent.destroy();
      },
    );
  sent.once("socket", (socket) => {
    if (socket.connecting) socket.once("secureConnect", ask);
    else ask();
  });
}

function limitConnecting(socket: TLSSocket, endpoint: KubeEndpoint): void {
  if (!socket.connecting) return;
  const timeoutMs = endpoint.connectTimeoutMs ?? defaultConnectTimeoutMs;
  const timer = setTimeout(() => socket.destroy(new ConnectTimeout(timeoutMs)), timeoutMs);
  socket.once("secureConnect", () => clearTimeout(timer));
  socket.once("close", () => clearTimeout(timer));
}

/**
 * @throws StarlingError for an unreadable authority. Node would treat an empty one as trust in all public authorities.
 */
function authorityOf(server: string, caData: string): string[] {
  const read = readAuthority(caData);
  if ("certificates" in read) return read.certificates.map(String);
  throw new StarlingError(`the certificate authority of ${server} (caData) ${read.problem}`, {
    code: "InvalidAuthority",
    retry: "permanent",
    data: { server },
  });
}

function decodeBase64(text: string): string {
  return text.startsWith("-----BEGIN") ? text : Buffer.from(text, "base64").toString("utf8");
}

function certificateOptions({ credentials }: KubeEndpoint): { readonly cert?: string; readonly key?: string } {
  if (!("clientCertificate" in credentials)) return {};
  const { certData, keyData } = credentials.clientCertificate;
  return { cert: decodeBase64(certData), key: decodeBase64(keyData) };
}
