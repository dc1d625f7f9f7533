import type { ClientRequest } from "node:http";
import { Agent, request as sendRequest } from "node:https";
import { createSecureContext, type TLSSocket } from "node:tls";
import { AnswerBody } from "#shared/adapters/kube/answer-body.ts";
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
import { clusterAddresses, guardedLookup, refuseLiteralAddress } from "#shared/adapters/net/address-rules.ts";
import { defined } from "#shared/base/defined.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { isOwnFault } from "#shared/base/own-fault.ts";
import { starlingVersion } from "#shared/base/starling-version.ts";
import { readAuthority } from "#shared/kube/certificate-authority.ts";

/** Gives the bearer token for a cluster; with `refresh` the last one was refused and must not be given again. */
export type TokenProvider = (options: { readonly refresh: boolean }) => Promise<string>;

export interface KubeEndpoint {
  /** `https://host[:port][/prefix]`. */
  readonly server: string;
  /** The certificate authority, PEM in base64 as in EKS and kubeconfigs; absent: the system's. */
  readonly caData?: string;
  /** The name in the server's certificate where it is not the host's. */
  readonly tlsServerName?: string;
  readonly credentials:
    | { readonly token: TokenProvider }
    | { readonly clientCertificate: { readonly certData: string; readonly keyData: string } };
  /** Requests at once; more wait. */
  readonly maxSockets?: number;
  /** How long a connection may take until it is secure; 5 s unless given. */
  readonly connectTimeoutMs?: number;
  /** Told of requests that reached nobody, or somebody who is not the server: names, routes, certificates. */
  readonly onUnreachable?: () => void;
}

export interface TransportRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Below the server's prefix, names percent-encoded, with the query. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string;
  /** True when answers may hold values of a Secret. */
  readonly secret?: boolean;
  /** When to stop waiting for the answer, in milliseconds from now. */
  readonly timeoutMs: number;
  readonly maxBodyBytes: number;
  /** Asked when there is a connection and a token, before anything is sent; what it throws ends the request. */
  readonly permit?: () => Promise<void>;
}

export interface TransportAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

/** Of an answer outside 2xx: of a Status only the first few kilobytes are ever used. */
const maxRefusalBytes = 1024 * 1024;
/** Of one answer: each piece costs time, whatever its size, and honest ones are of a kilobyte and more. */
const maxPieces = 100_000;
/** Each one is a TLS handshake; more than this gains a Sync of ordinary size nothing. */
const defaultMaxSockets = 8;
/** A private endpoint without a route does not refuse, it swallows: that must not take as long as a slow answer. */
const defaultConnectTimeoutMs = 10_000;

/**
 * HTTPS to one API server over kept connections. Answers of any status are answers; a `KubeError` means there was none,
 * or one larger than allowed, and any other error that nobody was asked. A 401 is tried once more with a fresh token.
 */
export class KubeTransport {
  readonly #base: URL;
  readonly #agent: Agent;
  readonly #place: { readonly host: string; readonly port: number; readonly prefix: string };
  readonly #endpoint: KubeEndpoint;
  #isAddressAllowed = false;

  constructor(endpoint: KubeEndpoint) {
    this.#endpoint = endpoint;
    this.#base = new URL(endpoint.server);
    if (this.#base.protocol !== "https:") {
      throw new TypeError(`the server of a cluster must be an https URL, got ${JSON.stringify(endpoint.server)}`);
    }
    this.#agent = new Agent({
      keepAlive: true,
      maxSockets: endpoint.maxSockets ?? defaultMaxSockets,
      scheduling: "lifo",
      lookup: guardedLookup(clusterAddresses),
      // Made once: from the certificates themselves each connection would make it anew, and each request its name in the agent.
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

  /** Closes every connection, and ends what is under way on one; the next request opens another. */
  close(): void {
    this.#agent.destroy();
  }

  /** Beside a connection that fell silent, the others of its time are silent too: trying each takes minutes. */
  #closeIdle(): void {
    for (const sockets of Object.values(this.#agent.freeSockets)) {
      for (const socket of sockets ?? []) socket.destroy();
    }
  }

  async #sendOnce(request: TransportRequest, token: { readonly refresh: boolean }): Promise<TransportAnswer> {
    const { credentials } = this.#endpoint;
    // It does not change; of a name each connection asks.
    if (!this.#isAddressAllowed) refuseLiteralAddress(clusterAddresses, this.#base);
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
      const end = (reported: () => void) => {
        clearTimeout(timer);
        if (!isOver) reported();
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
            // The status of a refusal says enough; of any other answer a part says nothing.
            if (refused) answer("");
            response.destroy(body.pieces > maxPieces ? new BodyInPieces(maxPieces) : new BodyTooLarge(maxBytes));
          });
          response.on("error", fail);
          response.on("end", () => answer(body.text()));
        },
      );
      // A signal would do the same, for a fifth of the time that it takes to send a request.
      const timer = setTimeout(
        () => {
          fail(new NoAnswer(request.timeoutMs));
          sent.destroy();
        },
        Math.max(1, request.timeoutMs),
      );
      timer.unref();
      sent.on("error", fail);
      // A connection that becomes something else ends without an error and without an answer.
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

/** A request may wait for its connection for as long as others take: what was permitted before that is not any more. */
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

/** @throws StarlingError rather than to trust the public authorities: that is what Node makes of an empty one. */
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
