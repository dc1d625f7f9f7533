import type { IncomingMessage, ServerResponse } from "node:http";
import type { Principals } from "#local/aws/iam/principals.ts";
import { refusalReply } from "#local/aws/iam/signature-refusals.ts";
import { verifySigV4 } from "#local/aws/iam/sigv4-verifier.ts";
import { createSecretStore, SecretsError } from "#local/aws/services/secret-store.ts";
import { serveOnLoopback } from "#local/base/loopback-server.ts";
import { readBytesUpTo } from "#local/base/read-bytes.ts";

export interface SecretsServerOptions {
  readonly principals: Pick<Principals, "find">;
  /**
   * Whether a principal may call an operation on a secret. The secret has the name of the request. The default allows
   * all.
   */
  readonly allows?: (request: SecretsRequest) => boolean;
  /** The folder of the secrets; only the user can read it. The default keeps secrets in memory. */
  readonly stateDir?: string;
  readonly port?: number;
  readonly region?: string;
}

export interface SecretsRequest {
  readonly principalArn: string;
  /** For example `GetSecretValue`. */
  readonly operation: string;
  /** A name or an ARN. */
  readonly secretId: string;
}

export interface SecretsServer {
  readonly endpoint: string;
  stop(): Promise<void>;
}

/** Larger than any secret, which has at most 64 KiB. */
const maxBodyBytes = 256 * 1024;

/** Secrets Manager on 127.0.0.1: create, put, get and describe, with versions and staging labels. */
export async function startSecrets(options: SecretsServerOptions): Promise<SecretsServer> {
  const { principals, allows = () => true } = options;
  const store = await createSecretStore(options);

  async function perform(principalArn: string, target: string, body: Buffer): Promise<object> {
    const operation = target.replace(/^secretsmanager\./, "");
    const request = JSON.parse(body.toString()) as { readonly SecretId?: unknown; readonly Name?: unknown };
    const secretId = String(request.SecretId ?? request.Name ?? "");
    if (!allows({ principalArn, operation, secretId })) {
      const wish = `secretsmanager:${operation} on resource: ${secretId}`;
      throw new SecretsError(
        "AccessDeniedException",
        `User: ${principalArn} is not authorized to perform: ${wish} because no identity-based policy allows the secretsmanager:${operation} action`,
      );
    }
    return store.perform(operation, request);
  }

  async function answer(principalArn: string, target: string, body: Buffer) {
    try {
      return { status: 200, body: await perform(principalArn, target, body) };
    } catch (error) {
      if (error instanceof SecretsError) return { status: 400, body: { __type: error.code, Message: error.message } };
      return { status: 500, body: { __type: "InternalServiceError", Message: String(error) } };
    }
  }

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "GET", url = "/", headers } = request;
    const verdict = await verifySigV4(
      { method, url, headers, body: () => readBytesUpTo(maxBodyBytes, request) },
      { principals, service: "secretsmanager", now: () => new Date() },
    );
    if (verdict.verdict === "refused") {
      const refusal = refusalReply("secretsmanager", verdict);
      response.writeHead(refusal.status, refusal.headers).end(refusal.body);
      return;
    }
    const { status, body } = await answer(
      verdict.accessKey.principalArn,
      String(headers["x-amz-target"]),
      verdict.body,
    );
    response.writeHead(status, { "content-type": "application/x-amz-json-1.1" }).end(JSON.stringify(body));
  }

  // An error here means that the sender closed the connection before its request was complete.
  const listening = await serveOnLoopback(
    (request, response) => {
      respond(request, response).catch(() => response.destroy());
    },
    options.port === undefined ? {} : { port: options.port },
  );
  return {
    endpoint: listening.origin,
    stop: () => listening.stop(),
  };
}
