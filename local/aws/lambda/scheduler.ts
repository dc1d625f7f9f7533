import { type FunctionError, functionError } from "#local/aws/lambda/function-error.ts";
import type { Invocation, LambdaFunction } from "#local/aws/lambda/lambda-function.ts";

export interface ScheduleOptions {
  readonly lambda: Pick<LambdaFunction, "invoke" | "timeoutSeconds">;
  readonly everyMs: number;
  /** The target's input. Default `{}`. */
  readonly event?: unknown;
  readonly onInvocation?: (invocation: Invocation) => void;
  /** Gets what Lambda tells the function's destination of an event that was not got done; left out, nobody hears of it. */
  readonly onFailure?: (record: FailureRecord) => Promise<void>;
}

/** As of an asynchronous invocation that is not tried again; the parts that say something here. */
export interface FailureRecord {
  readonly version: "1.0";
  readonly timestamp: string;
  readonly requestContext: { readonly condition: "RetriesExhausted"; readonly approximateInvokeCount: 1 };
  readonly requestPayload: unknown;
  readonly responseContext: { readonly statusCode: 200; readonly functionError: "Unhandled" };
  readonly responsePayload: FunctionError;
}

export interface Schedule {
  /** Invokes now and resolves with the outcome; it neither waits for a run in progress nor delays the next. */
  fire(): Promise<Invocation>;
  pause(): void;
  resume(): void;
  /** Ends the schedule after the runs in progress. */
  stop(): Promise<void>;
  /** The sandboxes die: nobody waits for what runs any more. */
  kill(): void;
}

/**
 * Invokes a function at an interval, as EventBridge Scheduler does with its one-minute precision; the first time after one
 * interval. A run that is due while the last one goes on is skipped; only `fire` makes runs overlap.
 */
export function startSchedule(options: ScheduleOptions): Schedule {
  const { lambda, everyMs, event = {}, onInvocation } = options;
  const running = new Set<Promise<unknown>>();
  let sandboxes = new AbortController();
  let timer: NodeJS.Timeout | undefined;

  async function invoke(): Promise<Invocation> {
    const invocation = await lambda.invoke({ event, killed: sandboxes.signal });
    onInvocation?.(invocation);
    // Lambda tries again what found no place to run in, for a minute; here the next run does.
    if (invocation.outcome !== "returned" && invocation.outcome !== "throttled") {
      // What its destination does not take is lost to Lambda, too.
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
