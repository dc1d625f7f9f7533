import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { MemoryUse, Sandbox } from "#local/aws/lambda/sandbox.ts";
import type { FromThread, ThreadData, ToThread } from "#local/aws/lambda/sandbox-thread.ts";

export interface ThreadSandboxOptions extends ThreadData {
  /** The limit of the JavaScript heap. Buffers and native memory do not count. */
  readonly memoryMiB: number;
}

/** The error that Lambda reports when an invocation exceeds the memory limit. */
class OutOfMemory extends Error {
  override readonly name = "Runtime.OutOfMemory";

  constructor(memoryMiB: number) {
    super(`Runtime exited with error: signal: killed (the limit is ${memoryMiB} MiB)`);
  }
}

/** The error that Lambda reports when the process exits by itself. */
class ExitError extends Error {
  override readonly name = "Runtime.ExitError";
}

/**
 * A sandbox in its own thread, with its own module state. Its heap has a limit that ends it, and destroyed code stops.
 * Each such sandbox imports all code again, so only tests of these properties use it.
 */
export function threadSandbox({ memoryMiB, ...data }: ThreadSandboxOptions): Sandbox {
  const worker = new Worker(new URL("./sandbox-thread.ts", import.meta.url), {
    workerData: data,
    resourceLimits: { maxOldGenerationSizeMb: memoryMiB },
  });
  worker.unref();
  let memory: MemoryUse = { peakMiB: 0, of: "sandbox" };
  let ended: Error | undefined;
  const { promise: end, reject: endWith } = Promise.withResolvers<never>();
  end.catch(() => {});
  const finish = (error: Error) => {
    ended ??= error;
    endWith(ended);
  };
  worker.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "ERR_WORKER_OUT_OF_MEMORY") return finish(error);
    memory = { peakMiB: memoryMiB, of: "sandbox" };
    finish(new OutOfMemory(memoryMiB));
  });
  worker.on("exit", (code) => finish(new ExitError(`Runtime exited with exit status: ${code}`)));
  const send = (message: ToThread) => worker.postMessage(message);

  return {
    async execute({ event, context, trace }) {
      const { getRemainingTimeInMillis, ...plain } = context;
      worker.ref();
      try {
        send({ kind: "invoke", event, context: plain, remainingMs: getRemainingTimeInMillis(), trace });
        const [answer] = (await Promise.race([end, once(worker, "message")])) as [FromThread];
        memory = { peakMiB: answer.peakMiB, of: "sandbox" };
        if (answer.kind === "returned") return answer.result;
        throw Object.assign(new Error(answer.message), { name: answer.name, stack: answer.stack });
      } finally {
        worker.unref();
      }
    },
    broken: () => ended !== undefined,
    memory: () => memory,
    freeze: (fate) => send({ kind: "freeze", fate }),
    destroy: () => void worker.terminate(),
  };
}
