import { type AddressInfo, createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

export type Network = "open" | "refused" | "hangs";

/** A TCP port of 127.0.0.1: of all clusters, or of one, so that its network can fail and others' do not. */
export interface ClusterPort {
  readonly port: number;
  /**
   * `open` and `refused` end every connection. `hangs` takes new ones and is silent; those that were there stay, and
   * whoever answers on them has to be silent too.
   */
  setNetwork(network: Network): Promise<void>;
  close(): Promise<void>;
}

/** Another program may take a port while nobody listens on it, most often for a moment. */
const reopenWithinMs = 10_000;
const reopenPauseMs = 50;

/**
 * @param options.port - 0 takes any free one.
 * @param options.accept - given each connection as long as the network is open.
 * @throws Error when the port is taken.
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
    // A silent network does not tell either that the other end went away.
    socket.on("error", () => socket.destroy());
    if (network === "open") options.accept(socket);
  });
  await listen(options.port);
  const { port } = server.address() as AddressInfo;

  function listen(wanted: number): Promise<void> {
    return new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen(wanted, "127.0.0.1", () => {
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
