import { renderEnv } from "#functions/render/env.ts";
import { wireRender } from "#functions/render/wire.ts";
import { parseEnv } from "#shared/lambda/parse-env.ts";
import { renderClients } from "#shared/lambda/render-clients.ts";

export const handler = wireRender(parseEnv(renderEnv), renderClients());
