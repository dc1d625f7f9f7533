/** One HTTP request to a host that the author of a Source chose: its address is checked, and it shares no connection. */
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest, type RequestOptions } from "node:https";
import { createSecureContext, getCACertificates, type SecureContext } from "node:tls";
import { LRUCache } from "lru-cache";
import { type AddressRules, guardedLookup, refuseLiteralAddress } from "#shared/adapters/net/address-rules.ts";
import { defined } from "#shared/base/defined.ts";
import { digestOf } from "#shared/base/digest.ts";
import type { TlsIdentity } from "#shared/ports.ts";

export interface GuardedMessage {
  readonly url: URL;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer;
}

export interface Guard {
  readonly rules: AddressRules;
  /** PEM certificates to trust in addition to the machine's. */
  readonly ca?: string;
  /** The part of the credentials that belongs to the connection. */
  readonly tls?: TlsIdentity;
  /** Ends the request and the reading of its answer. */
  readonly signal: AbortSignal;
}

/** @throws StarlingError `AddressRefused`, or the error of the socket. The caller must read or destroy the answer. */
export async function guardedRequest(
  { url, method, headers, body }: GuardedMessage,
  { rules, ca, tls, signal }: Guard,
): Promise<IncomingMessage> {
  refuseLiteralAddress(rules, url);
  const length = body === undefined ? {} : { "content-length": String(body.length) };
  const options: RequestOptions = {
    method,
    headers: { ...headers, ...length },
    // Each request uses a new connection, so that its address is always checked, and no idle connection survives a
    // frozen Lambda.
    agent: false,
    lookup: guardedLookup(rules),
    signal,
    ...(ca === undefined && tls === undefined ? {} : { secureContext: contextOf(ca, tls) }),
  };
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const request = url.protocol === "https:" ? httpsRequest(url, options) : httpRequest(url, options);
  request.on("response", resolve);
  request.on("error", reject);
  request.end(body);
  return promise;
}

/** Only cookies have several values, and nobody reads them. */
export function flatHeaders(response: IncomingMessage): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(response.headers)) {
    if (typeof value === "string") headers[name] = value;
  }
  return headers;
}

/** A context has some hundred kilobytes. */
const contexts = new LRUCache<string, SecureContext>({ max: 50 });

/**
 * The machine's certificates together with these. Reading them takes longer than the rest of a handshake, so that they
 * are cached.
 */
function contextOf(ca: string | undefined, { ca: own, certificate, privateKey }: TlsIdentity = {}): SecureContext {
  const id = digestOf([ca ?? "", own ?? "", certificate ?? "", privateKey ?? ""]);
  const known = contexts.get(id);
  if (known !== undefined) return known;
  const trusted = [ca, own].filter((each) => each !== undefined);
  const context = createSecureContext({
    ca: [...getCACertificates("default"), ...trusted],
    ...defined({ cert: certificate, key: privateKey }),
  });
  contexts.set(id, context);
  return context;
}
