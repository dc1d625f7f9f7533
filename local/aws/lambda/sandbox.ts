import type { LambdaContext, LambdaHandler } from "#local/aws/lambda/lambda-context.ts";
import { SandboxNetwork, type SocketFate } from "#local/aws/lambda/sandbox-network.ts";

/** The most memory that was seen in use during an invocation. */
export interface MemoryUse {
  readonly peakMiB: number;
  /** Whose it was: the sandbox's own, or that of the whole process, which it shares with everything else. */
  readonly of: "sandbox" | "process";
}

export interface Execution {
  readonly event: unknown;
  readonly context: LambdaContext;
  /** X-Amzn-Trace-Id of the invocation. */
  readonly trace: string;
}

/** Where a function's code runs, one invocation at a time, with the state and the connections that it keeps. */
export interface Sandbox {
  /** @throws what the handler throws, or what ended the sandbox itself: it is then `broken`. */
  execute(execution: Execution): Promise<unknown>;
  broken(): boolean;
  memory(): MemoryUse;
  /** Between two invocations. */
  freeze(fate: SocketFate): void;
  /** Nothing runs in it any more, or at least reaches anything. */
  destroy(): void;
}

/**
 * A sandbox in this process. It keeps its own clients and connections, but neither its memory nor its time on the
 * processor: code that was destroyed may go on, and all its requests fail.
 */
export function sharedSandbox(handler: LambdaHandler): Sandbox {
  const network = new SandboxNetwork();
  let peakMiB = 0;
  const look = () => {
    peakMiB = Math.max(peakMiB, memoryOfProcess());
  };
  return {
    async execute({ event, context, trace }) {
      peakMiB = 0;
      look();
      try {
        return await network.run(trace, async () => handler(event as never, context));
      } finally {
        look();
      }
    },
    broken: () => false,
    memory: () => ({ peakMiB, of: "process" }),
    freeze: (fate) => network.freeze(fate),
    destroy: () => network.cut(),
  };
}

/** In MiB. */
function memoryOfProcess(): number {
  return Math.ceil(process.memoryUsage.rss() / 1024 / 1024);
}
