import { resolveEnv } from "#functions/resolve/env.ts";
import { wireResolve } from "#functions/resolve/wire.ts";
import { parseEnv } from "#shared/lambda/parse-env.ts";
import { resolveClients } from "#shared/lambda/resolve-clients.ts";

export const handler = wireResolve(parseEnv(resolveEnv), resolveClients());
