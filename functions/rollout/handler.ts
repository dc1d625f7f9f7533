import { rolloutEnv } from "#functions/rollout/env.ts";
import { wireRollout } from "#functions/rollout/wire.ts";
import { blobClients, rowClients } from "#shared/lambda/core-clients.ts";
import { parseEnv } from "#shared/lambda/parse-env.ts";

export const handler = wireRollout(parseEnv(rolloutEnv), { ...rowClients(), ...blobClients() });
