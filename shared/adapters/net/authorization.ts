import type { SourceCredentials } from "#shared/ports.ts";
import { isBelowPrefix } from "#shared/source/url-prefix.ts";

/** The header that goes with the first request, because waiting for a 401 costs a round trip. */
export function authorization(credentials: SourceCredentials | undefined): Record<string, string> {
  if (credentials === undefined || credentials.kind === "ssh") return {};
  if (credentials.kind === "bearer") return { authorization: `Bearer ${credentials.token}` };
  const pair = `${credentials.username}:${credentials.password}`;
  return { authorization: `Basic ${Buffer.from(pair).toString("base64")}` };
}

/** Whether credentials that are bound to a prefix may go to an address. */
export function mayGoTo(credentials: SourceCredentials | undefined, url: URL): boolean {
  if (credentials === undefined || credentials.kind === "ssh") return true;
  return credentials.prefix === undefined || isBelowPrefix(`${url.origin}${url.pathname}`, credentials.prefix);
}
