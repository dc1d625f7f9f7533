import { createLambdaContext, type FunctionIdentity, type LambdaHandler } from "#local/aws/lambda-context.ts";

export interface InvocationRequest extends FunctionIdentity {
  readonly handler: LambdaHandler;
  readonly event: unknown;
  /** Ends the invocation as if its sandbox had died. */
  readonly killed: AbortSignal;
}

export type InvocationOutcome =
  | { readonly outcome: "returned"; readonly result: unknown }
  | { readonly outcome: "failed"; readonly error: unknown }
  | { readonly outcome: "timeout" }
  | { readonly outcome: "killed" };

/**
 * Invokes a handler as Lambda does. After the function's timeout, or when killed, nobody waits for it any more and its
 * result is ignored; unlike Lambda, its code may still run. That is wanted: it is the old worker that wakes up later.
 */
export async function invokeFunction(request: InvocationRequest): Promise<InvocationOutcome> {
  const { handler, event, killed, timeoutSeconds } = request;
  const { promise: interrupted, resolve: interrupt } = Promise.withResolvers<InvocationOutcome>();
  const timer = setTimeout(() => interrupt({ outcome: "timeout" }), timeoutSeconds * 1000);
  const onKill = () => interrupt({ outcome: "killed" });
  killed.addEventListener("abort", onKill);
  try {
    return await Promise.race([interrupted, run(handler, event, request)]);
  } finally {
    clearTimeout(timer);
    killed.removeEventListener("abort", onKill);
  }
}

async function run(handler: LambdaHandler, event: unknown, identity: FunctionIdentity): Promise<InvocationOutcome> {
  try {
    return { outcome: "returned", result: await handler(event as never, createLambdaContext(identity)) };
  } catch (error) {
    return { outcome: "failed", error };
  }
}
