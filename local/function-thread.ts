/** What a function needs to run in a thread of its own: everything that can be cloned. */
import type { LambdaHandler } from "#local/aws/lambda-context.ts";
import { functionCode, pacedHandler, tracedClients } from "#local/function-code.ts";
import { type AwsClientOptions, awsClients } from "#shared/lambda/aws-clients.ts";

export interface FunctionThreadData {
  readonly folder: string;
  readonly variables: Readonly<Record<string, string>>;
  readonly clients: AwsClientOptions;
  /** The functions' clock: what it said at a time of the system's, and how fast it runs. */
  readonly clock: { readonly saidMs: number; readonly atMs: number; readonly rate: number };
}

export function createHandler({ folder, variables, clients, clock }: FunctionThreadData): LambdaHandler {
  const now = () => new Date(clock.saidMs + (Date.now() - clock.atMs) * clock.rate);
  const { wire } = functionCode(folder);
  return pacedHandler(wire(variables, tracedClients(awsClients(clients)), { clock: { now } }), clock.rate);
}
