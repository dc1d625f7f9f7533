import { once } from "node:events";
import { createServer } from "node:http";
import { buffer } from "node:stream/consumers";
import { errorCode } from "#shared/base/errors.ts";
import type { BlobLinks, BlobStore, UploadPlaces } from "#shared/ports.ts";

export interface ServedBlobs extends BlobLinks, UploadPlaces {
  stop(): Promise<void>;
}

/** Blobs by links, as S3 gives them out for some minutes: to whoever has the link. */
export async function serveBlobs(blobs: BlobStore): Promise<ServedBlobs> {
  const server = createServer((request, response) => {
    const key = decodeURIComponent((request.url ?? "").slice(1));
    if (request.method === "PUT") {
      buffer(request)
        .then((bytes) => blobs.overwrite(key, bytes))
        .then(() => response.end());
      return;
    }
    blobs.get(key).then(
      (bytes) => response.end(bytes),
      (error: unknown) => response.writeHead(errorCode(error) === "BlobNotFound" ? 404 : 500).end(),
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return {
    link: async (key) => `http://127.0.0.1:${address.port}/${encodeURIComponent(key)}`,
    place: async (key) => `http://127.0.0.1:${address.port}/${encodeURIComponent(key)}`,
    size: (key) =>
      blobs.get(key).then(
        (bytes) => bytes.length,
        () => undefined,
      ),
    async stop() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}
