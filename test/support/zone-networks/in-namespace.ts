/** The parts that programs in namespaces share: they answer their parent, and give it connections. */
import { createServer } from "node:net";

export interface ToNamespace {
  readonly id: number;
  readonly question: object;
}

export type FromNamespace =
  | { readonly kind: "answer"; readonly id: number; readonly answer: unknown }
  | {
      readonly kind: "error";
      readonly id: number;
      readonly name: string;
      readonly message: string;
      readonly stack: string;
    }
  | { readonly kind: "connection"; readonly address: string; readonly port: number };

/** Answers the parent's questions, and ends when the parent ends. */
export function answerParent(answer: (question: never) => unknown): void {
  process.on("disconnect", () => process.exit());
  process.on("message", async ({ id, question }: ToNamespace) => {
    try {
      send({ kind: "answer", id, answer: await answer(question as never) });
    } catch (error) {
      const { name, message, stack = "" } = error instanceof Error ? error : new Error(String(error));
      send({ kind: "error", id, name, message, stack });
    }
  });
}

/** Listens, and gives each connection to the parent, which is in another network. No byte is read here. */
export function passConnections(host: string, port: number): Promise<void> {
  const server = createServer({ pauseOnConnect: true }, (socket) => {
    socket.on("error", () => {});
    const { localAddress: address = "", localPort = 0 } = socket;
    process.send?.({ kind: "connection", address, port: localPort } satisfies FromNamespace, socket, () => {});
  });
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
}

function send(message: FromNamespace): void {
  // The parent may have ended meanwhile.
  process.send?.(message, () => {});
}
