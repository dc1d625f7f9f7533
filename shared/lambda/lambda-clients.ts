import { LambdaClient } from "@aws-sdk/client-lambda";
import { type ClientOptions, clientConfig } from "#shared/lambda/core-clients.ts";

/** In a separate file, for the functions that call Lambda: see `core-clients.ts`. */
export interface LambdaClients {
  readonly lambda: LambdaClient;
}

export function lambdaClients(options?: ClientOptions<"lambda">): LambdaClients {
  return { lambda: new LambdaClient(clientConfig("lambda", options)) };
}
