/** The challenge of a registry that wants to know who asks: the header `WWW-Authenticate` of its answer 401. */

export type Challenge =
  | { readonly scheme: "basic" }
  | { readonly scheme: "bearer"; readonly realm: string; readonly service?: string };

/** Hosts that give tokens for a registry under another name. */
const tokenHosts: Readonly<Record<string, string>> = {
  "registry-1.docker.io": "auth.docker.io",
  "registry.gitlab.com": "gitlab.com",
};

/** @returns undefined when the header asks for something else. */
export function parseChallenge(header: string | undefined): Challenge | undefined {
  const [, scheme = "", rest = ""] = /^\s*([A-Za-z]+)\s*(.*)$/s.exec(header ?? "") ?? [];
  if (scheme.toLowerCase() === "basic") return { scheme: "basic" };
  if (scheme.toLowerCase() !== "bearer") return undefined;
  const values = new Map<string, string>();
  for (const [, name = "", value = ""] of rest.matchAll(/([A-Za-z_]+)="([^"]*)"/g))
    values.set(name.toLowerCase(), value);
  const realm = values.get("realm");
  const service = values.get("service");
  if (realm === undefined || !URL.canParse(realm)) return undefined;
  return { scheme: "bearer", realm, ...(service === undefined ? {} : { service }) };
}

/**
 * Whether credentials for the registry may go to the realm: a registry could name anybody's host there.
 * @param registry - `https://ghcr.io`
 * @param named - hosts that the secret itself names.
 */
export function mayAskFor(registry: string, realm: string, named: readonly string[]): boolean {
  const [from, to] = [new URL(registry), new URL(realm)];
  if (to.protocol !== "https:" && to.protocol !== from.protocol) return false;
  return to.host === from.host || tokenHosts[from.host] === to.host || named.includes(to.host);
}
