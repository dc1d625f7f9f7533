/**
 * Real API servers that outlive a test file, because a start takes seconds and more processor time than most tests. A test
 * returns its server, and the next test gets it in its first state, or gets another one.
 */
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import type { KubeApiServer } from "#local/clusters/kube-apiserver.ts";
import { defined } from "#shared/base/defined.ts";
import { errorMessage } from "#shared/base/errors.ts";
import { restoreServer, type ServerState, stateOf } from "#test/support/server-pool/server-state.ts";

/** The line that a borrower gets. The server belongs to the borrower until the connection ends. */
export interface Lent {
  readonly server?: Pick<KubeApiServer, "server" | "caData" | "token" | "tokens">;
  readonly error?: string;
}

interface Pooled {
  readonly server: KubeApiServer;
  /** The state at the moment when the server became ready. */
  readonly fresh: ServerState;
}

/** More would only take memory: nobody needs more than a few at once. */
const mostIdle = 4;

/** Lends servers at a Unix socket, which only the owner of its folder can reach. */
export async function startServerPool(socketPath: string, start: () => Promise<KubeApiServer>) {
  const idle: Pooled[] = [];
  /** Returned servers that nobody waits for yet. */
  const returning: Promise<Pooled | undefined>[] = [];
  const running = new Set<KubeApiServer>();
  const borrowers = new Set<Socket>();
  let isOpen = true;

  async function startOne(): Promise<Pooled> {
    const server = await start();
    running.add(server);
    return { server, fresh: await stateOf(server) };
  }

  async function end(server: KubeApiServer): Promise<void> {
    running.delete(server);
    await server.stop();
  }

  /** A restored one is there sooner than a new one. */
  async function take(): Promise<Pooled> {
    for (;;) {
      const ready = idle.pop() ?? (await returning.shift());
      if (ready !== undefined) return ready;
      if (returning.length === 0 && idle.length === 0) return startOne();
    }
  }

  async function takeBack(pooled: Pooled, forwarder: Forwarder): Promise<void> {
    // Nothing that its borrower left behind reaches it any more.
    const restoring = forwarder.shut().then(() => restored(pooled));
    returning.push(restoring);
    const usable = await restoring;
    const place = returning.indexOf(restoring);
    // Somebody has waited for it.
    if (place < 0) return;
    returning.splice(place, 1);
    if (usable === undefined) return;
    if (idle.length < mostIdle && isOpen) idle.push(usable);
    else await end(usable.server);
  }

  async function restored(pooled: Pooled): Promise<Pooled | undefined> {
    const { server, fresh } = pooled;
    if (isOpen && server.exit() === undefined && (await restoreServer(server, fresh))) return pooled;
    await end(server);
    return undefined;
  }

  async function lend(borrower: Socket): Promise<void> {
    // A borrower that ends the connection and connects again finds this server on its way back.
    const gone = Promise.race([once(borrower, "end"), once(borrower, "close")]);
    const pooled = await take();
    const forwarder = await openForwarder(pooled.server);
    const { caData, token, tokens } = pooled.server;
    borrower.write(line({ server: { server: forwarder.address, caData, token, tokens } }));
    await gone;
    await takeBack(pooled, forwarder);
  }

  const listener = createServer((borrower) => {
    borrowers.add(borrower);
    borrower.on("error", () => {});
    borrower.once("close", () => borrowers.delete(borrower));
    lend(borrower).catch((error) => borrower.end(line({ error: errorMessage(error) })));
  });
  listener.listen(socketPath);
  await once(listener, "listening");

  return {
    async stop() {
      isOpen = false;
      listener.close();
      for (const borrower of borrowers) borrower.destroy();
      await Promise.all([...running].map(end));
    },
  };
}

function line(lent: Lent): string {
  return `${JSON.stringify(defined({ ...lent }))}\n`;
}

interface Forwarder {
  readonly address: string;
  shut(): Promise<void>;
}

/** An address of the server that can be taken away from whoever knows it. */
async function openForwarder({ server }: KubeApiServer): Promise<Forwarder> {
  const { port, hostname } = new URL(server);
  const sockets = new Set<Socket>();
  const forwarder: Server = createServer((outer) => {
    const inner = connect(Number(port), hostname);
    for (const [socket, other] of [
      [outer, inner],
      [inner, outer],
    ] as const) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on("error", () => other.destroy());
      socket.once("close", () => {
        sockets.delete(socket);
        other.end();
      });
      socket.pipe(other);
    }
  });
  forwarder.listen(0, hostname);
  await once(forwarder, "listening");
  const address = forwarder.address();
  const forwarderPort = typeof address === "object" && address !== null ? address.port : 0;
  return {
    address: `https://${hostname}:${forwarderPort}`,
    async shut() {
      const closed = once(forwarder, "close");
      forwarder.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
