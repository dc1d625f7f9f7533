/** The data with which a function runs in its own thread. A thread gets clones only. */
import type { LambdaHandler } from "#local/aws/lambda/lambda-context.ts";
import { functionCode, tracedClients } from "#local/machine/function-code.ts";
import { type AwsClientOptions, awsClients } from "#shared/lambda/aws-clients.ts";

export interface FunctionThreadData {
  readonly folder: string;
  readonly variables: Readonly<Record<string, string>>;
  readonly clients: AwsClientOptions;
}

export function createHandler({ folder, variables, clients }: FunctionThreadData): LambdaHandler {
  return functionCode(folder).wire(variables, tracedClients(awsClients(clients)), {});
}
