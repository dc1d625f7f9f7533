import { type AddressInfo, createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

export type Network = "open" | "refused" | "hangs";

/** A TCP port of 127.0.0.1. It belongs to all clusters or to one, so that the network of one cluster can fail alone. */
export interface ClusterPort {
  readonly port: number;
  /**
   * `open` and `refused` end every connection. `hangs` accepts new connections and stays silent on them. It keeps
   * existing connections, so their servers must stay silent, too.
   */
  setNetwork(network: Network): Promise<void>;
  close(): Promise<void>;
}

/** Another program may take the port while no server listens on it, usually for a moment. */
const reopenWithinMs = 10_000;
const reopenPauseMs = 50;

/**
 * @param options.port - 0 takes any free port. @param options.accept - receives each connection while the network is
 * open. @throws Error when the port is taken.
 */
export async function openClusterPort(options: {
  readonly port: number;
  readonly accept: (socket: Socket) => void;
}): Promise<ClusterPort> {
  const sockets = new Set<Socket>();
  let network: Network = "open";
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    // A silent network does not report that the other end has closed.
    socket.on("error", () => socket.destroy());
    if (network === "open") options.accept(socket);
  });
  await listen(options.port);
  const { port } = server.address() as AddressInfo;

  function listen(desired: number): Promise<void> {
    return new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen(desired, "127.0.0.1", () => {
        server.off("error", reject);
        resolve();
      });
    });
  }
  async function reopen(): Promise<void> {
    for (const until = Date.now() + reopenWithinMs; ; await sleep(reopenPauseMs)) {
      try {
        return await listen(port);
      } catch (error) {
        if (Date.now() >= until) throw error;
      }
    }
  }
  function stopListening(): Promise<void> {
    return new Promise((resolve) => {
      server.close(() => resolve());
      for (const socket of sockets) socket.destroy();
    });
  }
  return {
    port,
    async setNetwork(next) {
      network = next;
      if (next === "refused" && server.listening) await stopListening();
      if (next !== "hangs") for (const socket of sockets) socket.destroy();
      if (next !== "refused" && !server.listening) await reopen();
    },
    close: stopListening,
  };
}
