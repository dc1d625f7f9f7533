import { rolloutEnv } from "#functions/rollout/env.ts";
import { wireRollout } from "#functions/rollout/wire.ts";
import { awsClients } from "#shared/lambda/aws-clients.ts";
import { parseEnv } from "#shared/lambda/parse-env.ts";

export const handler = wireRollout(parseEnv(rolloutEnv), awsClients());
