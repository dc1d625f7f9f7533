import { dashboardEnv } from "#functions/dashboard/env.ts";
import { wireDashboard } from "#functions/dashboard/wire.ts";
import { blobClients, rowClients } from "#shared/lambda/core-clients.ts";
import { parseEnv } from "#shared/lambda/parse-env.ts";

export const handler = wireDashboard(parseEnv(dashboardEnv), { ...rowClients(), ...blobClients() });
