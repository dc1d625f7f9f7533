import { type FunctionError, functionError } from "#local/aws/lambda/function-error.ts";
import type { Invocation, LambdaFunction } from "#local/aws/lambda/lambda-function.ts";

export interface ScheduleOptions {
  readonly lambda: Pick<LambdaFunction, "invoke" | "timeoutSeconds">;
  readonly everyMs: number;
  /** The input of the target. The default is `{}`. */
  readonly event?: unknown;
  readonly onInvocation?: (invocation: Invocation) => void;
  /** Receives the record that Lambda sends to the function's failure destination. The default drops it. */
  readonly onFailure?: (record: FailureRecord) => Promise<void>;
}

/** A failure record as for an asynchronous invocation without retries, with only the fields that Starling reads. */
export interface FailureRecord {
  readonly version: "1.0";
  readonly timestamp: string;
  readonly requestContext: { readonly condition: "RetriesExhausted"; readonly approximateInvokeCount: 1 };
  readonly requestPayload: unknown;
  readonly responseContext: { readonly statusCode: 200; readonly functionError: "Unhandled" };
  readonly responsePayload: FunctionError;
}

export interface Schedule {
  /**
   * Invokes the function now and resolves with the outcome. It neither waits for a current run nor delays the next one.
   */
  fire(): Promise<Invocation>;
  pause(): void;
  resume(): void;
  /** Ends the schedule after the current runs. */
  stop(): Promise<void>;
  /** Ends all sandboxes at once. */
  kill(): void;
}

/**
 * Invokes a function at an interval, as EventBridge Scheduler does with its precision of a minute. The first run is
 * after one interval. A run is skipped if the last one has not ended. Only `fire` makes runs overlap.
 */
export function startSchedule(options: ScheduleOptions): Schedule {
  const { lambda, everyMs, event = {}, onInvocation } = options;
  const running = new Set<Promise<unknown>>();
  let sandboxes = new AbortController();
  let timer: NodeJS.Timeout | undefined;

  async function invoke(): Promise<Invocation> {
    const invocation = await lambda.invoke({ event, killed: sandboxes.signal });
    onInvocation?.(invocation);
    // Lambda repeats a throttled run for a minute. Here the next run takes its place.
    if (invocation.outcome !== "returned" && invocation.outcome !== "throttled") {
      // Lambda, too, drops a record that its destination refuses.
      await options.onFailure?.(failureRecord(event, functionError(invocation, lambda))).catch(() => {});
    }
    return invocation;
  }

  function fire(): Promise<Invocation> {
    const run = invoke();
    running.add(run);
    const over = () => running.delete(run);
    run.then(over, over);
    return run;
  }

  function resume(): void {
    timer ??= setInterval(() => {
      if (running.size === 0) void fire();
    }, everyMs);
  }

  function pause(): void {
    clearInterval(timer);
    timer = undefined;
  }

  resume();
  return {
    fire,
    pause,
    resume,
    async stop() {
      pause();
      await Promise.allSettled(running);
    },
    kill() {
      sandboxes.abort();
      sandboxes = new AbortController();
    },
  };
}

function failureRecord(event: unknown, error: FunctionError): FailureRecord {
  return {
    version: "1.0",
    timestamp: new Date().toISOString(),
    requestContext: { condition: "RetriesExhausted", approximateInvokeCount: 1 },
    requestPayload: event,
    responseContext: { statusCode: 200, functionError: "Unhandled" },
    responsePayload: error,
  };
}
