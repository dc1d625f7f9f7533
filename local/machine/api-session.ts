import { Sha256 } from "@aws-crypto/sha256-js";
import { SignatureV4 } from "@smithy/signature-v4";
import type { Machine } from "#local/machine/machine.ts";
import { defined } from "#shared/base/defined.ts";
import { queryString } from "#shared/base/percent-encoding.ts";

/** Twice the time that API Gateway gives a function. An API that is silent for longer will not answer. */
const answerWithinMs = 60_000;

/** Calls the api function of this machine as a user does: with a signature, over HTTP. */
export interface ApiSession {
  /** @throws ApiAnswer with the API's message when it refuses, and a TimeoutError when it does not answer. */
  call<T>(method: "GET" | "POST" | "DELETE", path: string, body?: unknown): Promise<T>;
  apply(documents: readonly unknown[]): Promise<void>;
}

/** An answer of the API that refuses the request. */
export class ApiAnswer extends Error {
  readonly status: number;
  readonly text: string;
  /** The id of this request in the functions' logs. */
  readonly correlationId: string | undefined;

  constructor(
    request: string,
    answer: { readonly status: number; readonly text: string; readonly correlationId: string | undefined },
  ) {
    super(`${request} answered ${answer.status}: ${answer.text}`);
    this.status = answer.status;
    this.text = answer.text;
    this.correlationId = answer.correlationId;
  }
}

export function openApiSession(api: Machine["api"]): ApiSession {
  const signer = new SignatureV4({
    service: "execute-api",
    region: api.region,
    credentials: api.credentials,
    sha256: Sha256,
  });

  async function call<T>(method: "GET" | "POST" | "DELETE", path: string, body?: unknown): Promise<T> {
    const url = new URL(path, api.endpoint);
    const query = Object.fromEntries(url.searchParams);
    url.search = queryString(query);
    const text = body === undefined ? undefined : JSON.stringify(body);
    const { headers } = await signer.sign({
      method,
      protocol: url.protocol,
      hostname: url.hostname,
      port: Number(url.port),
      path: url.pathname,
      query,
      headers: { host: url.host, ...(text === undefined ? {} : { "content-type": "application/json" }) },
      ...defined({ body: text }),
    });
    const { host: _host, ...sent } = headers;
    const answer = await fetch(url, {
      method,
      headers: sent,
      signal: AbortSignal.timeout(answerWithinMs),
      ...defined({ body: text }),
    });
    const { status } = answer;
    const answered = await answer.text();
    const correlationId = answer.headers.get("x-correlation-id") ?? undefined;
    if (status >= 300) throw new ApiAnswer(`${method} ${path}`, { status, text: answered, correlationId });
    return JSON.parse(answered) as T;
  }

  return {
    call,
    async apply(documents) {
      await call("POST", "/v1/apply", { documents, confirm: true });
    },
  };
}
