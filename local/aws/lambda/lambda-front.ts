import { restJsonError } from "#local/aws/wire/aws-error-replies.ts";
import type { FaultContext, Forward, ServiceFront } from "#local/aws/wire/fault-context.ts";

/** Lambda with injected throttles. */
export function createLambdaFront(options: {
  readonly context: FaultContext;
  readonly forward: Forward;
}): ServiceFront {
  const { context, forward } = options;
  return async (call) => {
    if (!context.random.chance(context.faults().lambda.throttle)) return forward(call.http);
    context.injected("lambda:throttle");
    return restJsonError(429, "TooManyRequestsException", "Rate Exceeded.");
  };
}
