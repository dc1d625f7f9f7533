import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import { buffer } from "node:stream/consumers";

export interface ServedRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** `reset`: the connection breaks off. */
export type ScriptedAnswer =
  | "reset"
  | { readonly status: number; readonly body?: string; readonly headers?: Readonly<Record<string, string>> };

export interface ScriptedServer {
  readonly endpoint: string;
  /** All there were since `restart`. */
  readonly requests: readonly ServedRequest[];
  /** Answers whose reader went away before their end, since `restart`. */
  cutOff(): number;
  /** Forgets what was asked, and answers the n-th request (from 0) by this from now on. */
  restart(answer: (request: ServedRequest, index: number) => ScriptedAnswer): void;
  stop(): Promise<void>;
}

/** A service that answers what no emulator can be brought to answer. */
export async function startScriptedServer(): Promise<ScriptedServer> {
  const requests: ServedRequest[] = [];
  let cutOff = 0;
  let answer: (request: ServedRequest, index: number) => ScriptedAnswer = () => "reset";
  const server = createServer(async (incoming, response) => {
    const { method = "", url = "", headers } = incoming;
    const request = { method, url, headers, body: (await buffer(incoming)).toString() };
    const said = answer(request, requests.push(request) - 1);
    if (said === "reset") {
      incoming.socket.destroy();
      return;
    }
    response.once("close", () => {
      if (!response.writableFinished) cutOff += 1;
    });
    response.writeHead(said.status, said.headers);
    response.end(said.body);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return {
    endpoint: `http://127.0.0.1:${address.port}`,
    requests,
    cutOff: () => cutOff,
    restart(next) {
      cutOff = 0;
      requests.length = 0;
      answer = next;
    },
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
