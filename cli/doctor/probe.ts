import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";

export interface Probed {
  readonly status: number;
  readonly milliseconds: number;
  /** The server's time, to the second; absent when its answer has no date. */
  readonly date?: Date;
}

const probeTimeoutMs = 10_000;

/** Sends a request without a signature. Any answer, even a refusal, shows that the server is reachable, and its time. */
export function probe(url: URL, options: { readonly ca?: string; readonly signal: AbortSignal }): Promise<Probed> {
  const { ca, signal } = options;
  const start = url.protocol === "https:" ? httpsRequest : httpRequest;
  const began = performance.now();
  return new Promise((resolve, reject) => {
    const request = start(
      url,
      {
        signal: AbortSignal.any([signal, AbortSignal.timeout(probeTimeoutMs)]),
        agent: false,
        ...(ca === undefined ? {} : { ca: Buffer.from(ca, "base64").toString("utf8") }),
      },
      (response) => {
        response.resume();
        const at = Date.parse(response.headers.date ?? "");
        const milliseconds = Math.round(performance.now() - began);
        resolve({
          status: response.statusCode ?? 0,
          milliseconds,
          ...(Number.isNaN(at) ? {} : { date: new Date(at) }),
        });
      },
    );
    request.on("error", reject);
    request.end();
  });
}
