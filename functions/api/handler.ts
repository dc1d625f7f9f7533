import { apiEnv } from "#functions/api/env.ts";
import { wireApi } from "#functions/api/wire.ts";
import { doorClients } from "#shared/lambda/door-clients.ts";
import { parseEnv } from "#shared/lambda/parse-env.ts";

export const handler = wireApi(parseEnv(apiEnv), doorClients());
