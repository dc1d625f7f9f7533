import { isIP } from "node:net";

/** The host name that API Gateway gives an API. A custom domain does not match. */
export const gatewayName = /^([a-z0-9]+)\.execute-api\.([a-z0-9-]+)\.amazonaws\.com(\.cn)?$/;

/** The region in a host name of API Gateway; undefined for a custom domain. */
export function regionInName(endpoint: string): string | undefined {
  return gatewayName.exec(new URL(endpoint).hostname)?.[2];
}

export function isOnLoopback(endpoint: string): boolean {
  const { hostname } = new URL(endpoint);
  const address = hostname.replace(/^\[(.*)\]$/, "$1");
  return hostname === "localhost" || address === "::1" || (isIP(address) === 4 && address.startsWith("127."));
}
