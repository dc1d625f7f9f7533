import { resolveEnv } from "#functions/resolve/env.ts";
import { wireResolve } from "#functions/resolve/wire.ts";
import { coreClients } from "#shared/lambda/core-clients.ts";
import { parseEnv } from "#shared/lambda/parse-env.ts";

export const handler = wireResolve(parseEnv(resolveEnv), coreClients());
