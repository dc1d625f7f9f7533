import { discoverEnv } from "#functions/discover/env.ts";
import { wireDiscover } from "#functions/discover/wire.ts";
import { discoveryClients } from "#shared/lambda/discovery-clients.ts";
import { parseEnv } from "#shared/lambda/parse-env.ts";

export const handler = wireDiscover(parseEnv(discoverEnv), discoveryClients());
