import { once } from "node:events";
import { createServer } from "node:net";
import { LocalFailure } from "#local/base/local-failure.ts";
import type { Ports } from "#local/serve/state-folder.ts";

/** The flag that chooses each port. */
export const portFlags = { api: "--port", git: "--git-port", clusters: "--cluster-port" } as const satisfies Record<
  keyof Ports,
  string
>;

/** What is left out may be any port. */
export type PortsWanted = { readonly [Name in keyof Ports]?: number | undefined };

/**
 * Looks whether ports of 127.0.0.1 can be listened on, before anything is started.
 * @throws LocalFailure naming the port that cannot, and the flag that chooses another.
 */
export async function requireFreePorts(ports: PortsWanted): Promise<void> {
  for (const [name, port] of Object.entries(ports)) {
    const trouble = port === undefined ? undefined : await troubleWith(port);
    if (trouble === undefined) continue;
    const flag = portFlags[name as keyof Ports];
    const next = `starling local up ${flag} PORT   (or free it: ss -ltnp 'sport = :${port}')`;
    throw new LocalFailure(`port ${port} of 127.0.0.1 ${trouble} (${flag})`, { exit: "unknown", next });
  }
}

async function troubleWith(port: number): Promise<string | undefined> {
  const server = createServer();
  try {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EADDRINUSE") return "is taken by another process";
    return code === "EACCES" ? "is only for the superuser" : `cannot be listened on: ${code}`;
  }
  server.close();
  await once(server, "close");
  return undefined;
}
