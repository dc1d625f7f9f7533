import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface BlackHole {
  readonly port: number;
  /** From now on connections are taken, and nothing is ever answered; those that exist fall silent, too. */
  swallow(): void;
  /** New connections reach the server again. Those that were swallowed stay silent until the client gives up. */
  release(): void;
  /** Connections that were taken since the last `swallow` or `release`. */
  taken(): number;
  /** Connections that are open now, and the most that were open at once since then. */
  open(): number;
  mostAtOnce(): number;
  stop(): Promise<void>;
}

/**
 * A TCP proxy on 127.0.0.1 in front of a server, which can swallow everything as a dead host behind a firewall does.
 * @param options.silentMs - after which a swallowed connection is reset, for clients whose patience is longer than a test.
 */
export async function startBlackHole(
  targetPort: number,
  { silentMs }: { readonly silentMs?: number } = {},
): Promise<BlackHole> {
  const sockets = new Set<Socket>();
  const pairs = new Set<readonly [Socket, Socket]>();
  let isSwallowing = false;
  let taken = 0;
  let open = 0;
  let most = 0;
  const begin = (swallows: boolean) => {
    isSwallowing = swallows;
    taken = 0;
    most = open;
  };
  const resetLater = (near: Socket) => {
    if (silentMs !== undefined) setTimeout(() => near.destroy(), silentMs).unref();
  };
  const server = createServer((near) => {
    taken += 1;
    open += 1;
    most = Math.max(most, open);
    sockets.add(near);
    near.on("error", () => near.destroy());
    near.on("close", () => {
      open -= 1;
      sockets.delete(near);
    });
    // Bytes have to be read, otherwise the end of the connection is never seen.
    if (isSwallowing) {
      near.resume();
      resetLater(near);
      return;
    }
    const far = connect(targetPort, "127.0.0.1");
    const pair = [near, far] as const;
    pairs.add(pair);
    sockets.add(far);
    far.on("error", () => near.destroy());
    far.on("close", () => {
      pairs.delete(pair);
      sockets.delete(far);
      near.destroy();
    });
    near.on("close", () => far.destroy());
    near.pipe(far);
    far.pipe(near);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    swallow() {
      begin(true);
      for (const [near, far] of pairs) {
        resetLater(near);
        near.unpipe(far);
        far.unpipe(near);
        near.resume();
        far.resume();
      }
    },
    release: () => begin(false),
    taken: () => taken,
    open: () => open,
    mostAtOnce: () => most,
    async stop() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
