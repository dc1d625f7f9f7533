import { reportEnv } from "#functions/report/env.ts";
import { wireReport } from "#functions/report/wire.ts";
import { awsClients } from "#shared/lambda/aws-clients.ts";
import { parseEnv } from "#shared/lambda/parse-env.ts";

export const handler = wireReport(parseEnv(reportEnv), awsClients());
