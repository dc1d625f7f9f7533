import { webhookEnv } from "#functions/webhook/env.ts";
import { wireWebhook } from "#functions/webhook/wire.ts";
import { coreClients } from "#shared/lambda/core-clients.ts";
import { parseEnv } from "#shared/lambda/parse-env.ts";

export const handler = wireWebhook(parseEnv(webhookEnv), coreClients());
