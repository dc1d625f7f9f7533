import { apiEnv } from "#functions/api/env.ts";
import { wireApi } from "#functions/api/wire.ts";
import { apiClients } from "#shared/lambda/api-clients.ts";
import { parseEnv } from "#shared/lambda/parse-env.ts";

export const handler = wireApi(parseEnv(apiEnv), apiClients());
