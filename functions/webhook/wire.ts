import { z } from "zod";
import type { WebhookEnv } from "#functions/webhook/env.ts";
import { receiveGithubEvent, type WebhookPorts } from "#functions/webhook/webhook.ts";
import { DynamoTable } from "#shared/adapters/aws/dynamo-table.ts";
import { powertoolsLog } from "#shared/adapters/aws/powertools-observability.ts";
import { SecretsManagerReader } from "#shared/adapters/aws/secrets-reader.ts";
import { SqsSender } from "#shared/adapters/aws/sqs-sender.ts";
import { systemClock } from "#shared/adapters/system.ts";
import { errorCode, errorMessage } from "#shared/base/errors.ts";
import type { CoreClients } from "#shared/lambda/core-clients.ts";
import type { WireOptions } from "#shared/lambda/wire-options.ts";

/** The part of an HTTP API event (payload format 2.0) that Starling reads. */
const httpEvent = z.object({
  headers: z.record(z.string(), z.string().optional()).default({}),
  body: z.string().default(""),
  isBase64Encoded: z.boolean().default(false),
});

/** Answer of an HTTP API integration, payload format 2.0. */
export interface HttpAnswer {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export type WebhookHandler = (event: unknown, context: object) => Promise<HttpAnswer>;

export function wireWebhook(env: WebhookEnv, aws: CoreClients, options: WireOptions = {}): WebhookHandler {
  const { clock = systemClock } = options;
  return webhookHandler({
    table: new DynamoTable(aws.dynamo, env.STARLING_TABLE),
    sender: new SqsSender(aws.sqs, { resolve: env.STARLING_QUEUE_RESOLVE }),
    secrets: new SecretsManagerReader(aws.secrets, clock, { failures: "kept" }),
    log: powertoolsLog("webhook"),
    secretName: env.STARLING_WEBHOOK_SECRET,
  });
}

/** The endpoint over any ports. A failure of Starling's own is a 503 without detail: the sender shows and repeats it. */
export function webhookHandler(ports: WebhookPorts): WebhookHandler {
  return async (event) => {
    try {
      const { headers, body, isBase64Encoded } = httpEvent.parse(event);
      const named = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
      const bytes = Buffer.from(body, isBase64Encoded ? "base64" : "utf8");
      const { statusCode, message } = await receiveGithubEvent(
        { headers: Object.fromEntries(named), body: bytes },
        ports,
      );
      return answer(statusCode, message);
    } catch (error) {
      ports.log.error("webhook failed", { code: errorCode(error), error: errorMessage(error) });
      return answer(503, "unavailable");
    }
  };
}

function answer(statusCode: number, message: string): HttpAnswer {
  return { statusCode, headers: { "content-type": "application/json" }, body: JSON.stringify({ message }) };
}
