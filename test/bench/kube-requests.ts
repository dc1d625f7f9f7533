import { Agent, request as sendRequest } from "node:https";
import { text } from "node:stream/consumers";
import { runConcurrently } from "#shared/base/run-concurrently.ts";
import type { ClusterAddress } from "#test/bench/children.ts";

export interface RawRequest {
  readonly method: "GET" | "PATCH" | "PUT" | "POST" | "DELETE";
  readonly path: string;
  readonly contentType?: string;
  readonly body?: string;
}

/** Requests to an API server with `node:https` and kept connections, without a client and without retries. */
export class RawCluster {
  readonly #agent: Agent;
  readonly #base: URL;
  readonly #token: string;

  constructor({ server, caData, token }: ClusterAddress) {
    this.#agent = new Agent({ keepAlive: true, ca: Buffer.from(caData, "base64").toString("utf8") });
    this.#base = new URL(server);
    this.#token = token;
  }

  /** @throws Error for any answer other than 2xx. */
  send({ method, path, contentType, body }: RawRequest): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const headers = {
      authorization: `Bearer ${this.#token}`,
      accept: "application/json",
      ...(contentType === undefined ? {} : { "content-type": contentType }),
      ...(body === undefined ? {} : { "content-length": Buffer.byteLength(body) }),
    };
    const { hostname, port, pathname } = this.#base;
    const sent = sendRequest(
      { agent: this.#agent, hostname, port, path: pathname.replace(/\/$/, "") + path, method, headers },
      (response) => {
        text(response).then((answer) => {
          const { statusCode = 0 } = response;
          if (statusCode >= 200 && statusCode < 300) resolve(answer);
          else reject(new Error(`${method} ${path} answered ${statusCode}: ${answer.slice(0, 500)}`));
        }, reject);
      },
    );
    sent.on("error", reject);
    sent.end(body);
    return promise;
  }

  /** Sends all requests with this concurrency. @returns the answers in no order. */
  async sendAll(requests: readonly RawRequest[], concurrency: number): Promise<readonly string[]> {
    const answers: string[] = [];
    await runConcurrently(requests, concurrency, async (request) => {
      answers.push(await this.send(request));
    });
    return answers;
  }

  /** Closes connections. The next requests open new ones and may resume TLS sessions. */
  close(): void {
    this.#agent.destroy();
  }
}
