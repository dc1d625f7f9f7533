/** Answers the TokenReviews of a real API server by an authenticator that embedded ones call themselves. */
import type { Authenticator } from "@starling/embedded-apiserver";
import { serveOnLoopback } from "#local/base/loopback-server.ts";
import { readBytesUpTo } from "#local/base/read-bytes.ts";

export interface TokenWebhook {
  readonly url: string;
  stop(): Promise<void>;
}

const maxBodyBytes = 64 * 1024;

/** @param cluster - the name that the authenticator knows the server by. */
export async function startTokenWebhook(authenticator: Authenticator, cluster: string): Promise<TokenWebhook> {
  const listening = await serveOnLoopback((request, response) => {
    answer()
      .then((status) => {
        const review = { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", status };
        response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(review));
      })
      .catch((error: unknown) => response.writeHead(500).end(String(error)));

    async function answer(): Promise<object> {
      const { spec } = JSON.parse(String(await readBytesUpTo(maxBodyBytes, request))) as {
        readonly spec: { readonly token: string };
      };
      const user = await authenticator(spec.token, cluster);
      return user === undefined ? { authenticated: false } : { authenticated: true, user };
    }
  });
  return { url: listening.origin, stop: () => listening.stop() };
}
