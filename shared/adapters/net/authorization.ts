import type { SourceCredentials, TlsIdentity } from "#shared/ports.ts";
import { isBelowPrefix } from "#shared/source/url-prefix.ts";

/** The header that goes with the first request, because waiting for a 401 costs a round trip. */
export function authorization(credentials: SourceCredentials | undefined): Record<string, string> {
  if (credentials === undefined || credentials.kind === "ssh" || credentials.kind === "tls") return {};
  if (credentials.kind === "bearer") return { authorization: `Bearer ${credentials.token}` };
  const pair = `${credentials.username}:${credentials.password}`;
  return { authorization: `Basic ${Buffer.from(pair).toString("base64")}` };
}

/** The part of credentials that belongs to the connection. */
export function tlsOf(credentials: SourceCredentials | undefined): TlsIdentity | undefined {
  return credentials === undefined || credentials.kind === "ssh" ? undefined : credentials.tls;
}

/** Whether credentials that are bound to a prefix may go to an address. */
export function mayGoTo(credentials: SourceCredentials | undefined, url: URL): boolean {
  if (credentials === undefined || credentials.kind === "ssh") return true;
  return credentials.prefix === undefined || isBelowPrefix(`${url.origin}${url.pathname}`, credentials.prefix);
}
