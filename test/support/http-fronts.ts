import { createHmac } from "node:crypto";
import { request as httpRequest } from "node:http";
import { text } from "node:stream/consumers";
import { Sha256 } from "@aws-crypto/sha256-js";
import { SignatureV4 } from "@smithy/signature-v4";
import { apiHandler } from "#functions/api/http/api-handler.ts";
import { webhookHandler } from "#functions/webhook/webhook-handler.ts";
import { Principals } from "#local/aws/iam/principals.ts";
import { type HttpFront, startHttpFront } from "#local/aws/lambda/http-front.ts";
import { lambdaFunction } from "#local/aws/lambda/lambda-function.ts";
import { sharedSandbox } from "#local/aws/lambda/sandbox.ts";
import { createTable } from "#local/aws/services/create-resources.ts";
import { only } from "#local/machine/deployment.ts";
import { readPlan } from "#local/template/read-plan.ts";
import { synthesize } from "#local/template/synthesize.ts";
import { DynamoTable } from "#shared/adapters/aws/dynamo-table.ts";
import { randomIds, systemClock } from "#shared/adapters/system.ts";
import { defined } from "#shared/base/defined.ts";
import { gatewayRouteKeys } from "#shared/fleet/api/api-routes.ts";
import type { Log } from "#shared/ports.ts";
import { type EmulatedClients, startEmulatedClients } from "#test/support/emulated-clients.ts";
import { healthyInstallation } from "#test/support/healthy-installation.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { MemorySender } from "#test/support/memory-sender.ts";
import { noHttp } from "#test/support/no-http.ts";

const key = { accessKeyId: "AKTEST", secretAccessKey: "not-a-secret" };
const webhookSecret = "s3cret";

export interface FrontAnswer {
  readonly status: number;
  readonly text: string;
}

/** The API and the webhook function over HTTP, with an emulated DynamoDB. */
export interface HttpFronts {
  readonly table: DynamoTable;
  readonly proxy: EmulatedClients["proxy"];
  readonly sender: MemorySender;
  /** The log lines of the functions. */
  readonly log: readonly Readonly<Record<string, unknown>>[];
  /** Sends a signed request to the API. The body is sent unchanged. */
  ask(method: string, path: string, body?: string): Promise<FrontAnswer>;
  /** Sends a signed push to the webhook. */
  push(body: string, contentType?: string): Promise<FrontAnswer>;
  stop(): Promise<void>;
}

export async function startHttpFronts(): Promise<HttpFronts> {
  const emulated = await startEmulatedClients({ seed: 1 });
  const deployed = only(readPlan(await synthesize()).tables, "table");
  await createTable(emulated.aws.dynamo, deployed);
  const table = new DynamoTable(emulated.aws.dynamo, deployed.name);
  const sender = new MemorySender();
  const lines: Readonly<Record<string, unknown>>[] = [];
  const write = (message: string, fields?: Readonly<Record<string, unknown>>) => lines.push({ message, ...fields });
  const log: Log = { info: write, warn: write, error: write };
  const secrets = { read: async () => JSON.stringify([webhookSecret]) };
  const blobs = new MemoryBlobStore();
  const api = apiHandler({
    table,
    blobs,
    sender,
    clock: systemClock,
    ids: randomIds,
    log,
    installation: "starling",
    ...healthyInstallation,
  });
  const webhook = webhookHandler({
    ...{ table, sender, secrets, log },
    http: noHttp,
    clock: systemClock,
    secretName: "webhook",
  });
  const lambda = (functionName: string, handler: typeof api) =>
    lambdaFunction({ functionName, timeoutSeconds: 29, newSandbox: () => sharedSandbox(handler) });
  const toApi = lambda("api", api);
  const front: HttpFront = await startHttpFront({
    routes: [
      ...gatewayRouteKeys().map((routeKey) => ({ routeKey, authorization: "iam" as const, lambda: toApi })),
      { routeKey: "POST /hook/{host}", authorization: "none", lambda: lambda("webhook", webhook) },
    ],
    principals: new Principals([{ ...key, principalArn: "arn:aws:iam::000000000000:user/ana" }]),
  });
  const signer = new SignatureV4({ service: "execute-api", region: "us-east-1", credentials: key, sha256: Sha256 });
  return {
    table,
    proxy: emulated.proxy,
    sender,
    log: lines,
    async ask(method, path, body) {
      const url = new URL(path, front.url);
      const signed = await signer.sign({
        method,
        protocol: url.protocol,
        hostname: url.hostname,
        port: Number(url.port),
        path: url.pathname,
        query: Object.fromEntries(url.searchParams),
        headers: { host: url.host, "content-type": "application/json" },
        ...defined({ body }),
      });
      return exchange(url, { method, headers: signed.headers, body });
    },
    push(body, contentType = "application/json") {
      const signature = createHmac("sha256", webhookSecret).update(body).digest("hex");
      const headers = {
        "content-type": contentType,
        "x-github-event": "push",
        "x-hub-signature-256": `sha256=${signature}`,
      };
      return exchange(new URL("/hook/github", front.url), { method: "POST", headers, body });
    },
    async stop() {
      await front.stop();
      await emulated.stop();
    },
  };
}

interface Exchange {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

function exchange(url: URL, { method, headers, body }: Exchange): Promise<FrontAnswer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, { method, headers }, (response) => {
      text(response).then((answer) => resolve({ status: response.statusCode ?? 0, text: answer }), reject);
    });
    request.on("error", reject);
    request.end(body);
  });
}
