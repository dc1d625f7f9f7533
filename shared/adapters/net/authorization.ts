import type { SourceCredentials } from "#shared/ports.ts";

/** The header that goes with the first request, because waiting for a 401 costs a round trip. */
export function authorization(credentials: SourceCredentials | undefined): Record<string, string> {
  if (credentials === undefined || credentials.kind === "ssh") return {};
  if (credentials.kind === "bearer") return { authorization: `Bearer ${credentials.token}` };
  const pair = `${credentials.username}:${credentials.password}`;
  return { authorization: `Basic ${Buffer.from(pair).toString("base64")}` };
}
