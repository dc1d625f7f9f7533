import type { Principals } from "#local/aws/iam/principals.ts";
import {
  type JsonAnswer,
  type JsonRequest,
  type RunningService,
  startJsonService,
} from "#local/aws/services/json-service.ts";
import { createSecretStore, SecretsError } from "#local/aws/services/secret-store.ts";

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

/** Larger than any secret, which has at most 64 KiB. */
const maxBodyBytes = 256 * 1024;

/** Secrets Manager on 127.0.0.1: create, put, get and describe, with versions and staging labels. */
export async function startSecrets(options: SecretsServerOptions): Promise<RunningService> {
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

  async function answer({ principalArn, target, body }: JsonRequest): Promise<JsonAnswer> {
    try {
      return { status: 200, body: await perform(principalArn, target, body) };
    } catch (error) {
      if (error instanceof SecretsError) return { status: 400, body: { __type: error.code, Message: error.message } };
      return { status: 500, body: { __type: "InternalServiceError", Message: String(error) } };
    }
  }

  const { port } = options;
  return startJsonService({ principals, service: "secretsmanager", version: "1.1", maxBodyBytes, port, answer });
}
