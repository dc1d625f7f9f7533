import { tickEnv } from "#functions/tick/env.ts";
import { wireTick } from "#functions/tick/wire.ts";
import { awsClients } from "#shared/lambda/aws-clients.ts";
import { parseEnv } from "#shared/lambda/parse-env.ts";

export const handler = wireTick(parseEnv(tickEnv), awsClients());
