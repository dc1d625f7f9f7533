import { CloudWatchLogsClient } from "@aws-sdk/client-cloudwatch-logs";
import { type ClientOptions, clientConfig } from "#shared/lambda/core-clients.ts";

/** The client for reading logs. Only one function has it in its bundle. */
export interface LogClients {
  readonly logs: CloudWatchLogsClient;
}

/** Clients for Lambda (region and credentials from its environment), or for the endpoints given. */
export function logClients(options?: ClientOptions<keyof LogClients>): LogClients {
  return { logs: new CloudWatchLogsClient(clientConfig("logs", options)) };
}
