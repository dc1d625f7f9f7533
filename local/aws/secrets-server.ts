import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { createSecretStore, SecretsError } from "#local/aws/secret-store.ts";
import { listenOnLoopback } from "#local/loopback-server.ts";

export interface SecretsServerOptions {
  /** Folder that the secrets are kept in, readable by the user only; left out, they live in memory. */
  readonly stateDir?: string;
  readonly port?: number;
  readonly region?: string;
}

export interface SecretsServer {
  readonly endpoint: string;
  stop(): Promise<void>;
}

/** Secrets Manager on 127.0.0.1: create, put, get and describe, with versions and their staging labels. */
export async function startSecrets(options: SecretsServerOptions = {}): Promise<SecretsServer> {
  const store = await createSecretStore(options);

  async function answer(target: string, body: string): Promise<{ readonly status: number; readonly body: object }> {
    try {
      const operation = target.replace(/^secretsmanager\./, "");
      return { status: 200, body: await store.perform(operation, JSON.parse(body)) };
    } catch (error) {
      if (error instanceof SecretsError) return { status: 400, body: { __type: error.code, Message: error.message } };
      return { status: 500, body: { __type: "InternalServiceError", Message: String(error) } };
    }
  }

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { status, body } = await answer(String(request.headers["x-amz-target"]), await text(request));
    response.writeHead(status, { "content-type": "application/x-amz-json-1.1" }).end(JSON.stringify(body));
  }

  // What fails here is the reading of a request whose sender has left.
  const server = createServer((request, response) => {
    respond(request, response).catch(() => response.destroy());
  });
  const listening = await listenOnLoopback(server, options.port);
  return {
    endpoint: listening.origin,
    stop: () => listening.stop(),
  };
}
