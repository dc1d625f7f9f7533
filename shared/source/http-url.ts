/** URLs of files on servers, as Sources name them. */

/** Names of this machine in URLs. */
export const loopback: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);

/**
 * @param what - what the URL leads to: `repository`, `file`; undefined if a host alone will do.
 * @returns what is wrong with the URL and what to write instead, or undefined. Only `https` is fetched. `http` is for a
 *   server on the same machine, and the fetch refuses it unless the operator allows the address.
 */
export function checkHttpUrl(text: string, what: string | undefined): string | undefined {
  // Browsers read a backslash as a slash and drop line ends, so that two readers would see different hosts.
  if (/[\\\s\p{Cc}]/u.test(text)) return "contains a backslash, a space or a line end; write it as https://HOST/PATH";
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) return "is not a URL; write it as https://HOST/PATH";
  // URL reads this as https://acme/shop.
  if (/^https?:(?!\/\/[^/])/i.test(text)) return "has no host; write it as https://HOST/PATH";
  if (url.username !== "" || url.password !== "") {
    return "contains a user name or a password; remove it and name a secret in credentials";
  }
  if (url.protocol === "http:" && !loopback.has(url.hostname)) {
    return `would be fetched unencrypted; use https://${url.host}${url.pathname}`;
  }
  if (url.protocol !== "https:" && url.protocol !== "http:") {
    return `has the scheme ${url.protocol.slice(0, -1)}; only https is fetched`;
  }
  if (url.hash !== "") return "has a fragment, which a server never gets; remove it";
  if (what !== undefined && /^\/*$/.test(url.pathname)) return `names a host but no ${what}`;
  return undefined;
}
