import { renderEnv } from "#functions/render/env.ts";
import { wireRender } from "#functions/render/wire.ts";
import { coreClients } from "#shared/lambda/core-clients.ts";
import { parseEnv } from "#shared/lambda/parse-env.ts";

export const handler = wireRender(parseEnv(renderEnv), coreClients());
