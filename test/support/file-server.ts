import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { text } from "node:stream/consumers";

export interface AskedFile {
  readonly method: string;
  /** Path and query as received. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** `endless`: bytes until the reader goes away, or these bytes after the body; `silent`: no answer at all. */
export type FileAnswer =
  | "endless"
  | "silent"
  | {
      readonly status?: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: Uint8Array | string;
      readonly endless?: string;
    };

export interface FileServer {
  /** `http://127.0.0.1:PORT` */
  readonly url: string;
  readonly asked: readonly AskedFile[];
  /** Bytes that were written for `endless` answers. */
  written(): number;
  stop(): Promise<void>;
}

/** A web server on loopback whose answers a test chooses, and which records what it is asked. */
export async function startFileServer(answer: (asked: AskedFile) => FileAnswer): Promise<FileServer> {
  const asked: AskedFile[] = [];
  const sockets = new Set<Socket>();
  let written = 0;
  const server = createServer(async (incoming, response) => {
    const { method = "", url = "", headers } = incoming;
    const request = { method, url, headers, body: await text(incoming) };
    asked.push(request);
    const said = answer(request);
    if (said === "silent") return;
    const { status = 200, headers: given = {}, body = "", endless } = said === "endless" ? { endless: "\0" } : said;
    response.writeHead(status, given);
    if (endless !== undefined) {
      const block = Buffer.alloc(64 * 1024, endless);
      const more = () => {
        while (!response.destroyed) {
          written += block.length;
          if (!response.write(block)) return void response.once("drain", more);
        }
      };
      response.write(body);
      more();
      return;
    }
    response.end(body);
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    asked,
    written: () => written,
    async stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
