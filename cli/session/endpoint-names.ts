import { isIP } from "node:net";

/** What API Gateway calls an API of its own accord; a custom domain says nothing. */
export const gatewayName = /^([a-z0-9]+)\.execute-api\.([a-z0-9-]+)\.amazonaws\.com(\.cn)?$/;

/** API Gateway's own names say where they are; a custom domain does not. */
export function regionInName(endpoint: string): string | undefined {
  return gatewayName.exec(new URL(endpoint).hostname)?.[2];
}

export function isOnLoopback(endpoint: string): boolean {
  const { hostname } = new URL(endpoint);
  const address = hostname.replace(/^\[(.*)\]$/, "$1");
  return hostname === "localhost" || address === "::1" || (isIP(address) === 4 && address.startsWith("127."));
}
