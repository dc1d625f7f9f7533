import type { AwsCall } from "#local/aws/wire/aws-call.ts";
import type { HttpReply, HttpRequest } from "#local/aws/wire/emulator-client.ts";
import type { FaultOptions } from "#local/aws/wire/fault-options.ts";
import type { Random } from "#local/base/random.ts";

/** The state that the fronts of all services share. */
export interface FaultContext {
  readonly random: Random;
  /** The current faults. */
  faults(): FaultOptions;
  /** Counts an injected fault, for example `sqs:lose`. */
  injected(fault: string): void;
}

export type Forward = (request: HttpRequest) => Promise<HttpReply>;

/** Answers one call: forwards it, changes it or refuses it. */
export type ServiceFront = (call: AwsCall) => Promise<HttpReply>;
