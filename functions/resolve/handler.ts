import { resolveEnv } from "#functions/resolve/env.ts";
import { wireResolve } from "#functions/resolve/wire.ts";
import { awsClients } from "#shared/lambda/aws-clients.ts";
import { parseEnv } from "#shared/lambda/parse-env.ts";

export const handler = wireResolve(parseEnv(resolveEnv), awsClients());
