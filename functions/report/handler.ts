import { reportEnv } from "#functions/report/env.ts";
import { wireReport } from "#functions/report/wire.ts";
import { rowClients } from "#shared/lambda/core-clients.ts";
import { parseEnv } from "#shared/lambda/parse-env.ts";

export const handler = wireReport(parseEnv(reportEnv), rowClients());
