/** Goes the way to a TCP or TLS endpoint, and names the link that does not hold. */
import { lookup } from "node:dns/promises";
import { connect, isIP } from "node:net";
import { setTimeout as after } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { otherCode } from "#shared/base/error-codes.ts";
import { errorMessage, StarlingError } from "#shared/base/errors.ts";

export interface Endpoint {
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
}

export type WayLink = "dns" | "route" | "tls";

export interface Way {
  /** The answer of the resolver. */
  readonly addresses: readonly string[];
  /** The link that does not hold. */
  readonly broken?: { readonly link: WayLink; readonly code: string; readonly message: string };
}

/** @param patienceMs - for the resolver, and again for the connection. */
export async function wayTo(endpoint: Endpoint, patienceMs: number): Promise<Way> {
  const found = await resolved(endpoint.host, patienceMs);
  if (found instanceof Error) return { addresses: [], broken: { link: "dns", ...said(found) } };
  const failure = await connected(endpoint, patienceMs);
  return { addresses: found, ...(failure === undefined ? {} : { broken: failure }) };
}

/** As the SDK's own requests ask: by the system's resolver. It has no limit of its own. */
async function resolved(host: string, patienceMs: number): Promise<readonly string[] | Error> {
  const silence = new AbortController();
  try {
    return await Promise.race([
      lookup(host, { all: true }).then((all) => all.map(({ address }) => address)),
      after(patienceMs, silent(`the resolver does not answer for ${host}`, patienceMs), { signal: silence.signal }),
    ]);
  } catch (error) {
    return error as Error;
  } finally {
    silence.abort();
  }
}

function connected({ host, port, tls }: Endpoint, patienceMs: number): Promise<Way["broken"]> {
  const { promise, resolve } = Promise.withResolvers<Way["broken"]>();
  const socket = tls
    ? connectTls({ host, port, ...(isIP(host) === 0 ? { servername: host } : {}) })
    : connect({ host, port });
  let link: WayLink = "route";
  const timer = setTimeout(() => socket.destroy(silent(`nothing answers at ${host}:${port}`, patienceMs)), patienceMs);
  socket.once("connect", () => {
    link = "tls";
    if (!tls) end(undefined);
  });
  socket.once("secureConnect", () => end(undefined));
  socket.once("error", (error) => end({ link, ...said(error) }));
  socket.once("close", () => end({ link, code: "ECONNRESET", message: "the connection was closed" }));
  function end(broken: Way["broken"]): void {
    clearTimeout(timer);
    socket.destroy();
    resolve(broken);
  }
  return promise;
}

function silent(what: string, patienceMs: number): Error {
  const message = `${what} within ${patienceMs / 1000} s`;
  return new StarlingError(message, { code: otherCode("ETIMEDOUT"), retry: "transient" });
}

/** All addresses may have been tried, each with an error of its own. */
function said(error: Error): { readonly code: string; readonly message: string } {
  const [first = error] = error instanceof AggregateError ? (error.errors as readonly Error[]) : [];
  return { code: String((first as NodeJS.ErrnoException).code ?? error.name), message: errorMessage(first) };
}
