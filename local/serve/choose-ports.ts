import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";
import { LocalFailure } from "#local/base/local-failure.ts";
import type { Ports } from "#local/serve/state-folder.ts";

/** The flag that sets each port. */
export const portFlags = { api: "--port", git: "--git-port", clusters: "--cluster-port" } as const satisfies Record<
  keyof Ports,
  string
>;

/** A port that is undefined may be any port. */
export type DesiredPorts = { readonly [Name in keyof Ports]?: number | undefined };

/**
 * Below the ranges of outgoing connections (from 32768 or from 49152), so that no other program gets such a port by
 * chance.
 */
const lastingPorts = { from: 20_000, to: 32_000 };
const mostTries = 100;

/**
 * Adds free ports for those that are undefined. They are likely to be free at every later start. @throws LocalFailure
 * when no port is free.
 */
export async function withLastingPorts(desired: DesiredPorts): Promise<Ports> {
  const { api, git, clusters } = desired;
  const taken = new Set([api, git, clusters]);
  const choose = async () => {
    const port = await lastingPort(taken);
    taken.add(port);
    return port;
  };
  return { api: api ?? (await choose()), git: git ?? (await choose()), clusters: clusters ?? (await choose()) };
}

async function lastingPort(taken: ReadonlySet<number | undefined>): Promise<number> {
  for (let tried = 0; tried < mostTries; tried++) {
    const port = randomInt(lastingPorts.from, lastingPorts.to);
    if (!taken.has(port) && (await problemWith(port)) === undefined) return port;
  }
  const { from, to } = lastingPorts;
  const flags = Object.values(portFlags)
    .map((flag) => `${flag} PORT`)
    .join(" ");
  throw new LocalFailure(`${mostTries} ports of 127.0.0.1 between ${from} and ${to} are taken`, {
    exit: "unknown",
    next: `starling local up ${flags}`,
  });
}

/**
 * Checks that the ports of 127.0.0.1 are usable, before any server starts. @throws LocalFailure that names the port and
 * the flag that changes it.
 */
export async function requireFreePorts(ports: DesiredPorts): Promise<void> {
  for (const [name, port] of Object.entries(ports)) {
    const problem = port === undefined ? undefined : await problemWith(port);
    if (problem === undefined) continue;
    const flag = portFlags[name as keyof Ports];
    const next = `starling local up ${flag} PORT   (or free it: ss -ltnp 'sport = :${port}')`;
    throw new LocalFailure(`port ${port} of 127.0.0.1 ${problem} (${flag})`, { exit: "unknown", next });
  }
}

async function problemWith(port: number): Promise<string | undefined> {
  const server = createServer();
  try {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EADDRINUSE") return "is in use by another process";
    return code === "EACCES" ? "needs root privileges" : `cannot be used: ${code}`;
  }
  server.close();
  await once(server, "close");
  return undefined;
}
