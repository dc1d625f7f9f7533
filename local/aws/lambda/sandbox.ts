import type { LambdaContext, LambdaHandler } from "#local/aws/lambda/lambda-context.ts";
import { SandboxNetwork, type SocketFate } from "#local/aws/lambda/sandbox-network.ts";

/** The most memory in use that was observed during an invocation. */
export interface MemoryUse {
  readonly peakMiB: number;
  /** Whether the figure is for the sandbox alone, or for the whole process that it shares with other code. */
  readonly of: "sandbox" | "process";
}

export interface Execution {
  readonly event: unknown;
  readonly context: LambdaContext;
  /** The X-Amzn-Trace-Id of the invocation. */
  readonly trace: string;
}

/** A place where a function's code runs, one invocation at a time. It keeps its state and its connections. */
export interface Sandbox {
  /**
   * @throws the error of the handler, or the error that ended the sandbox. In the second case the sandbox is `broken`.
   */
  execute(execution: Execution): Promise<unknown>;
  broken(): boolean;
  memory(): MemoryUse;
  /** Called between two invocations. */
  freeze(fate: SocketFate): void;
  /** Ends the code in the sandbox, or at least cuts all its connections. */
  destroy(): void;
}

/**
 * A sandbox in this process. It has its own clients and connections, but shares memory and processor time. Destroyed
 * code may continue, but all its requests fail.
 */
export function sharedSandbox(handler: LambdaHandler): Sandbox {
  const network = new SandboxNetwork();
  let peakMiB = 0;
  const sample = () => {
    peakMiB = Math.max(peakMiB, memoryOfProcess());
  };
  return {
    async execute({ event, context, trace }) {
      peakMiB = 0;
      sample();
      try {
        return await network.run(trace, async () => handler(event as never, context));
      } finally {
        sample();
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
