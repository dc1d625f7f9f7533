import type { WebhookEnv } from "#functions/webhook/env.ts";
import { SpacedSender } from "#functions/webhook/spaced-sender.ts";
import { webhookHandler } from "#functions/webhook/webhook-handler.ts";
import { DynamoTable } from "#shared/adapters/aws/dynamo-table.ts";
import { powertoolsLog } from "#shared/adapters/aws/powertools-observability.ts";
import { SecretsManagerReader } from "#shared/adapters/aws/secrets-reader.ts";
import { SqsSender } from "#shared/adapters/aws/sqs-sender.ts";
import { readCertificates } from "#shared/adapters/git/read-certificates.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { GuardedHttpRemote } from "#shared/adapters/net/guarded-http-remote.ts";
import { httpFromZone } from "#shared/adapters/net/read-from-zone.ts";
import { systemClock } from "#shared/adapters/system.ts";
import { defined } from "#shared/base/defined.ts";
import { networkZone } from "#shared/fleet/kinds/zone-name.ts";
import type { RowClients, SecretClients } from "#shared/lambda/core-clients.ts";
import type { HttpHandler } from "#shared/lambda/http-handler.ts";
import type { WireOptions } from "#shared/lambda/wire-options.ts";

/** Senders wait ten seconds for an answer, and an issuer is asked for two files. */
const issuerSeconds = 3;

export function wireWebhook(env: WebhookEnv, aws: RowClients & SecretClients, options: WireOptions = {}): HttpHandler {
  const { clock = systemClock, output } = options;
  const issuers = new GuardedHttpRemote({
    rules: addressRules(env.STARLING_GIT_ALLOW ?? ""),
    ...defined({ ca: readCertificates(env.STARLING_GIT_CA_FILE) }),
    timeoutSeconds: issuerSeconds,
  });
  return webhookHandler({
    table: new DynamoTable(aws.dynamo, env.STARLING_TABLE),
    sender: new SpacedSender(new SqsSender(aws.sqs, { resolve: env.STARLING_QUEUE_RESOLVE }), clock),
    secrets: new SecretsManagerReader(aws.secrets, clock, { prefix: env.STARLING_SECRET_PREFIX }),
    http: httpFromZone(issuers, networkZone(env.STARLING_RESOLVE_ZONE)),
    clock,
    log: powertoolsLog("webhook", output),
    secretName: env.STARLING_WEBHOOK_SECRET,
  });
}
