import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { joinSockets } from "#test/support/join-sockets.ts";

/** A TCP proxy on 127.0.0.1. After a cut it refuses new connections and has ended the existing ones. */
export async function startCuttableProxy(targetPort: number): Promise<{ readonly port: number; cut(): void }> {
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(targetPort, "127.0.0.1");
    joinSockets(near, far, sockets);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    cut: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
