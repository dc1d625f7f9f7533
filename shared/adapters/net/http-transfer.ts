import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { ByteCollector } from "#shared/adapters/byte-collector.ts";
import { systemClock } from "#shared/adapters/system.ts";
import { errorMessage, StarlingError } from "#shared/base/errors.ts";
import { type RetryPolicy, retrying } from "#shared/base/retrying.ts";
import type { Transfer } from "#shared/ports.ts";

export interface HttpTransferOptions {
  /** How long the other side may be silent. */
  readonly silenceMs?: number;
  /** The limit of a packed artifact; its own limits apply after unpacking. */
  readonly maxDownloadBytes?: number;
}

/** Transfers bytes with presigned URLs. It signs nothing and has no credentials. */
export class HttpTransfer implements Transfer {
  readonly #limits: Required<HttpTransferOptions>;

  constructor({ silenceMs = 10_000, maxDownloadBytes = 200 * 1024 * 1024 }: HttpTransferOptions = {}) {
    this.#limits = { silenceMs, maxDownloadBytes };
  }

  async download(url: string): Promise<Uint8Array> {
    return inTries(() => exchange(url, { method: "GET", limits: this.#limits }));
  }

  async upload(url: string, bytes: Uint8Array): Promise<void> {
    await inTries(() => exchange(url, { method: "PUT", limits: this.#limits, body: bytes }));
  }
}

/** An error that another try within seconds will not change. */
class Refusal extends Error {}

const policy: RetryPolicy = {
  tries: (error) => (error instanceof Refusal ? 1 : 3),
  firstWaitMs: 200,
  jitter: "full",
};

async function inTries<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await retrying(policy, { clock: systemClock }, work);
  } catch (error) {
    const message = `the transfer failed: ${errorMessage(error)}`;
    throw new StarlingError(message, { code: "TransferFailed", retry: "transient" });
  }
}

interface Exchange {
  readonly method: "GET" | "PUT";
  readonly limits: Required<HttpTransferOptions>;
  readonly body?: Uint8Array;
}

async function exchange(url: string, { method, limits, body }: Exchange): Promise<Uint8Array> {
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  const start = url.startsWith("https:") ? httpsRequest : httpRequest;
  const headers = body === undefined ? {} : { "content-length": body.length, "if-none-match": "*" };
  const request = start(url, { method, headers, timeout: limits.silenceMs }, (response) => {
    answerOf(response, { method, limits }).then(resolve, reject);
  });
  request.on("timeout", () => request.destroy(new Error(`silent for ${limits.silenceMs} ms`)));
  request.on("error", reject);
  request.end(body);
  return promise;
}

async function answerOf(response: IncomingMessage, { method, limits }: Exchange): Promise<Uint8Array> {
  const { statusCode: status = 0 } = response;
  if (status >= 300) {
    response.destroy();
    // The key belongs to this attempt alone, so that an existing object comes from a request whose answer was lost.
    if (method === "PUT" && status === 412) return new Uint8Array();
    const said = `S3 answered ${status} to a presigned ${method}`;
    throw status >= 500 || status === 409 ? new Error(said) : new Refusal(said);
  }
  const body = new ByteCollector(limits.maxDownloadBytes);
  for await (const chunk of response as AsyncIterable<Buffer>) {
    if (!body.add(chunk)) throw new Refusal(`the download is larger than ${limits.maxDownloadBytes} bytes`);
  }
  return body.bytes();
}
