import { webhookEnv } from "#functions/webhook/env.ts";
import { wireWebhook } from "#functions/webhook/wire.ts";
import { rowClients, secretClients } from "#shared/lambda/core-clients.ts";
import { parseEnv } from "#shared/lambda/parse-env.ts";

export const handler = wireWebhook(parseEnv(webhookEnv), { ...rowClients(), ...secretClients() });
