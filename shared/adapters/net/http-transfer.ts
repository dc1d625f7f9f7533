import { request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import { systemClock } from "#shared/adapters/system.ts";
import { errorMessage, StarlingError } from "#shared/base/errors.ts";
import { type RetryPolicy, retrying } from "#shared/base/retrying.ts";
import type { Transfer } from "#shared/ports.ts";

const silenceMs = 10_000;
/** An artifact is packed; see its own limits. */
const maxDownloadBytes = 200 * 1024 * 1024;

/** Bytes by presigned URLs. It signs nothing and knows no credentials. */
export class HttpTransfer implements Transfer {
  async download(url: string): Promise<Uint8Array> {
    return inTries(() => exchange(url, { method: "GET" }));
  }

  async upload(url: string, bytes: Uint8Array): Promise<void> {
    const headers = { "content-length": bytes.length };
    await inTries(() => exchange(url, { method: "PUT", headers }, bytes));
  }
}

/** What another try will not change within seconds. */
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
    const message = `the bytes could not be moved: ${errorMessage(error)}`;
    throw new StarlingError(message, { code: "TransferFailed", retry: "transient" });
  }
}

interface Exchange extends RequestOptions {
  readonly method: "GET" | "PUT";
}

async function exchange(url: string, options: Exchange, body?: Uint8Array): Promise<Uint8Array> {
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  const start = url.startsWith("https:") ? httpsRequest : httpRequest;
  const request = start(url, { ...options, timeout: silenceMs }, (response) => {
    answerOf(response, options.method).then(resolve, reject);
  });
  request.on("timeout", () => request.destroy(new Error(`silent for ${silenceMs} ms`)));
  request.on("error", reject);
  request.end(body);
  return promise;
}

async function answerOf(response: IncomingMessage, method: Exchange["method"]): Promise<Uint8Array> {
  const { statusCode: status = 0 } = response;
  if (status >= 300) {
    response.destroy();
    const said = `S3 answered ${status} to a presigned ${method}`;
    throw status >= 500 ? new Error(said) : new Refusal(said);
  }
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxDownloadBytes) throw new Refusal(`more than ${maxDownloadBytes} bytes came`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
