import { tickEnv } from "#functions/tick/env.ts";
import { wireTick } from "#functions/tick/wire.ts";
import { alarmClients } from "#shared/lambda/alarm-clients.ts";
import { rowClients } from "#shared/lambda/core-clients.ts";
import { parseEnv } from "#shared/lambda/parse-env.ts";

export const handler = wireTick(parseEnv(tickEnv), { ...rowClients(), ...alarmClients() });
