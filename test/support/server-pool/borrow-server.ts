import { once } from "node:events";
import { connect } from "node:net";
import { inject } from "vitest";
import { type KubeApiServer, startKubeApiServer } from "#local/clusters/kube-apiserver.ts";
import type { KubeAssets } from "#local/clusters/kube-assets.ts";
import type { Lent } from "#test/support/server-pool/server-pool.ts";
import { serverUsers } from "#test/support/server-pool/server-users.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The socket of `startServerPool`. */
    readonly serverPool: string;
  }
}

export type BorrowedServer = Pick<KubeApiServer, "server" | "caData" | "token" | "tokens" | "stop">;

/** A server without controllers, as it is when it has just started. */
export async function borrowServer(assets: KubeAssets): Promise<BorrowedServer> {
  // Stryker's runs have no global setup.
  const socketPath: string | undefined = inject("serverPool");
  return socketPath === undefined ? startKubeApiServer({ assets, users: serverUsers }) : borrowAt(socketPath);
}

export async function borrowAt(socketPath: string): Promise<BorrowedServer> {
  const socket = connect(socketPath);
  socket.setEncoding("utf8");
  let text = "";
  for await (const chunk of socket.iterator({ destroyOnReturn: false }) as AsyncIterable<string>) {
    text += chunk;
    if (text.endsWith("\n")) break;
  }
  const { server, error = "the pool of servers is gone" }: Lent = text === "" ? {} : JSON.parse(text);
  if (server === undefined) throw new Error(error);
  socket.unref();
  return {
    ...server,
    async stop() {
      const closed = once(socket, "close");
      // A socket only closes after its data has been read.
      socket.resume();
      socket.end();
      await closed;
    },
  };
}
