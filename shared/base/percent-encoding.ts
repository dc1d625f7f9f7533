/**
 * RFC 3986: every character except A-Z, a-z, 0-9 and -_.~ is percent-encoded, as signatures of AWS require. A URL's own
 * `searchParams` write a space as `+`, which is signed as a plus sign.
 */
export function percentEncode(text: string): string {
  return encodeURIComponent(text).replaceAll(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** `a=b&c=d`, without undefined values. */
export function queryString(query: Readonly<Record<string, string | undefined>>): string {
  return Object.entries(query)
    .flatMap(([name, value]) => (value === undefined ? [] : [`${percentEncode(name)}=${percentEncode(value)}`]))
    .join("&");
}
