import { CloudWatchClient } from "@aws-sdk/client-cloudwatch";
import { type ClientOptions, clientConfig } from "#shared/lambda/core-clients.ts";

/** The client for reading alarms. Only one function has it in its bundle. */
export interface AlarmClients {
  readonly alarms: CloudWatchClient;
}

/** Clients for Lambda (region and credentials from its environment), or for the endpoints given. */
export function alarmClients(options?: ClientOptions<keyof AlarmClients>): AlarmClients {
  return { alarms: new CloudWatchClient(clientConfig("alarms", options)) };
}
