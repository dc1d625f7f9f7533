import { applyEnv } from "#functions/apply/env.ts";
import { wireApply } from "#functions/apply/wire.ts";
import { clusterClients } from "#shared/lambda/cluster-clients.ts";
import { parseEnv } from "#shared/lambda/parse-env.ts";

export const handler = wireApply(parseEnv(applyEnv), clusterClients());
