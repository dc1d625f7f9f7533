import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe } from "node:diagnostics_channel";
import type { ClientRequest } from "node:http";
import type { Socket } from "node:net";

/** What became of a sandbox's idle connections while it was frozen between two invocations. */
export type SocketFate = "kept" | "closed" | "reset";

interface Running {
  readonly network: SandboxNetwork;
  readonly trace: string;
}

/** What a client is told about a connection that the other side has forgotten. */
class ConnectionLost extends Error {
  readonly code = "ECONNRESET";

  constructor(why: string) {
    super(why);
  }
}

const running = new AsyncLocalStorage<Running>();
let watching = false;

/** The trace header of the invocation that this code is part of. */
export function currentTrace(): string | undefined {
  return running.getStore()?.trace;
}

/**
 * The connections of one sandbox: those of every request that code makes while it runs here, to AWS, git hosts and API
 * servers alike. On Lambda a sandbox is frozen between invocations, and connections do not always live through that.
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
   * `closed`: the other side has closed them, and the clients have noticed. `reset`: they have not, and whoever uses one
   * first learns it from an ECONNRESET; the others are found closed right after.
   */
  freeze(fate: SocketFate): void {
    if (fate === "closed") this.#close();
    this.#stale = fate === "reset" ? new Set(this.#open) : new Set();
  }

  /** Nothing that runs here reaches anything any more. */
  cut(): void {
    this.#cut = true;
    for (const socket of this.#open) socket.destroy(new ConnectionLost("the sandbox is gone"));
  }

  #watch(request: ClientRequest): void {
    if (this.#cut) request.destroy(new ConnectionLost("the sandbox is gone"));
    else request.once("socket", (socket) => this.#use(socket));
  }

  #use(socket: Socket): void {
    if (this.#stale.has(socket)) {
      socket.destroy(new ConnectionLost("the connection did not live through the freeze"));
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
