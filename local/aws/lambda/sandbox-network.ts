import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe } from "node:diagnostics_channel";
import type { ClientRequest } from "node:http";
import type { Socket } from "node:net";

/** The state of idle connections after a sandbox was frozen between two invocations. */
export type SocketFate = "kept" | "closed" | "reset";

interface Running {
  readonly network: SandboxNetwork;
  readonly trace: string;
}

/** The error of a client that uses a lost connection. */
class ConnectionLost extends Error {
  readonly code = "ECONNRESET";

  constructor(why: string) {
    super(why);
  }
}

const running = new AsyncLocalStorage<Running>();
let watching = false;

/** The trace header of the current invocation. */
export function currentTrace(): string | undefined {
  return running.getStore()?.trace;
}

/**
 * The connections of one sandbox, to AWS, git hosts and API servers. Lambda freezes a sandbox between invocations, and
 * a connection may not survive that.
 */
export class SandboxNetwork {
  readonly #open = new Set<Socket>();
  #stale: ReadonlySet<Socket> = new Set();
  #cut = false;

  constructor() {
    if (watching) return;
    watching = true;
    subscribe("http.client.request.created", (message) => {
      const { request } = message as { readonly request: ClientRequest };
      const network = running.getStore()?.network;
      if (network !== undefined) network.#watch(request);
    });
  }

  run<T>(trace: string, work: () => T): T {
    return running.run({ network: this, trace }, work);
  }

  /**
   * `closed`: the other side has closed the connections, and the clients know. `reset`: the clients do not know. The
   * first connection that is used then fails with ECONNRESET, and the others close right after.
   */
  freeze(fate: SocketFate): void {
    if (fate === "closed") this.#close();
    this.#stale = fate === "reset" ? new Set(this.#open) : new Set();
  }

  /** Cuts all connections of the sandbox, now and later. */
  cut(): void {
    this.#cut = true;
    for (const socket of this.#open) socket.destroy(new ConnectionLost("the sandbox has ended"));
  }

  #watch(request: ClientRequest): void {
    if (this.#cut) request.destroy(new ConnectionLost("the sandbox has ended"));
    else request.once("socket", (socket) => this.#use(socket));
  }

  #use(socket: Socket): void {
    if (this.#stale.has(socket)) {
      socket.destroy(new ConnectionLost("the connection was lost while the sandbox was frozen"));
      setImmediate(() => this.#closeStale());
      return;
    }
    if (this.#open.has(socket)) return;
    this.#open.add(socket);
    socket.once("close", () => this.#open.delete(socket));
  }

  #close(): void {
    for (const socket of this.#open) socket.destroy();
  }

  #closeStale(): void {
    for (const socket of this.#stale) socket.destroy();
    this.#stale = new Set();
  }
}
