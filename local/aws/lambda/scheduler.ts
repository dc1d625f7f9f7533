import type { Invocation, LambdaFunction } from "#local/aws/lambda/lambda-function.ts";

export interface ScheduleOptions {
  readonly lambda: Pick<LambdaFunction, "invoke">;
  readonly everyMs: number;
  /** The target's input. Default `{}`. */
  readonly event?: unknown;
  readonly onInvocation?: (invocation: Invocation) => void;
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
