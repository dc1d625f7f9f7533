import type { IncomingMessage, ServerResponse } from "node:http";
import type { Principals } from "#local/aws/iam/principals.ts";
import { type JsonService, refusalReply } from "#local/aws/iam/signature-refusals.ts";
import { verifySigV4 } from "#local/aws/iam/sigv4-verifier.ts";
import { serveOnLoopback } from "#local/base/loopback-server.ts";
import { readBytesUpTo } from "#local/base/read-bytes.ts";
import { defined } from "#shared/base/defined.ts";

export interface JsonServiceOptions {
  readonly principals: Pick<Principals, "find">;
  readonly service: JsonService;
  /** Of AWS's JSON protocol. */
  readonly version: "1.0" | "1.1";
  readonly maxBodyBytes: number;
  /** The default is any free port. */
  readonly port?: number | undefined;
  /** Answers a request with a valid signature. */
  answer(request: JsonRequest): Promise<JsonAnswer> | JsonAnswer;
}

export interface JsonRequest {
  readonly principalArn: string;
  /** Names the operation, for example `secretsmanager.GetSecretValue`. */
  readonly target: string;
  readonly body: Buffer;
}

export interface JsonAnswer {
  readonly status: number;
  readonly body: object;
}

export interface RunningService {
  readonly endpoint: string;
  stop(): Promise<void>;
}

/** A service of AWS's JSON protocol on 127.0.0.1. It refuses requests without a valid signature. */
export async function startJsonService(options: JsonServiceOptions): Promise<RunningService> {
  const { principals, service, version, maxBodyBytes, port } = options;

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "GET", url = "/", headers } = request;
    const verdict = await verifySigV4(
      { method, url, headers, body: () => readBytesUpTo(maxBodyBytes, request) },
      { principals, service, now: () => new Date() },
    );
    if (verdict.verdict === "refused") {
      const refusal = refusalReply(service, verdict);
      response.writeHead(refusal.status, refusal.headers).end(refusal.body);
      return;
    }
    const { principalArn } = verdict.accessKey;
    const target = String(headers["x-amz-target"]);
    const { status, body } = await options.answer({ principalArn, target, body: verdict.body });
    response.writeHead(status, { "content-type": `application/x-amz-json-${version}` }).end(JSON.stringify(body));
  }

  // An error here means that the sender closed the connection before its request was complete.
  const listening = await serveOnLoopback((request, response) => {
    respond(request, response).catch(() => response.destroy());
  }, defined({ port }));
  return { endpoint: listening.origin, stop: () => listening.stop() };
}
