/** The code inside a thread sandbox, see thread-sandbox.ts. */
import { getHeapStatistics } from "node:v8";
import { parentPort, workerData } from "node:worker_threads";
import type { LambdaContext, LambdaHandler } from "#local/aws/lambda/lambda-context.ts";
import { SandboxNetwork, type SocketFate } from "#local/aws/lambda/sandbox-network.ts";

export interface ThreadData {
  /** The URL of a module that exports `createHandler(data)`. It returns the function's handler or a promise of it. */
  readonly module: string;
  /** The argument of `createHandler`; the thread gets a clone. */
  readonly data: unknown;
}

export type ToThread =
  | {
      readonly kind: "invoke";
      readonly event: unknown;
      readonly context: Omit<LambdaContext, "getRemainingTimeInMillis">;
      readonly remainingMs: number;
      readonly trace: string;
    }
  | { readonly kind: "freeze"; readonly fate: SocketFate };

export type FromThread = { readonly peakMiB: number } & (
  | { readonly kind: "returned"; readonly result: unknown }
  | { readonly kind: "failed"; readonly name: string; readonly message: string; readonly stack: string }
);

const port = parentPort;
if (port === null) throw new Error("sandbox-thread.ts runs only in a thread; use threadSandbox()");

const sampleEveryMs = 20;
const network = new SandboxNetwork();
const { module, data } = workerData as ThreadData;
const handler = import(module).then(
  ({ createHandler }: { createHandler(data: unknown): LambdaHandler | Promise<LambdaHandler> }) => createHandler(data),
);
// `execute` reports this error to the caller.
handler.catch(() => {});

port.on("message", (message: ToThread) => {
  if (message.kind === "freeze") network.freeze(message.fate);
  else void invoke(message).then((answer) => port.postMessage(answer));
});

async function invoke(message: ToThread & { readonly kind: "invoke" }): Promise<FromThread> {
  const deadline = performance.now() + message.remainingMs;
  const context: LambdaContext = {
    ...message.context,
    getRemainingTimeInMillis: () => Math.max(0, Math.round(deadline - performance.now())),
  };
  let peakMiB = 0;
  const sample = () => {
    peakMiB = Math.max(peakMiB, usedMiB());
  };
  const sampling = setInterval(sample, sampleEveryMs);
  try {
    const work = await handler;
    const result = await network.run(message.trace, async () => work(message.event as never, context));
    sample();
    return { kind: "returned", result, peakMiB };
  } catch (error) {
    sample();
    const { name, message: text, stack = "" } = error instanceof Error ? error : new Error(String(error));
    return { kind: "failed", name, message: text, stack, peakMiB };
  } finally {
    clearInterval(sampling);
  }
}

/** The memory of this thread's heap and of external memory that its objects hold. */
function usedMiB(): number {
  const { used_heap_size, external_memory } = getHeapStatistics();
  return Math.ceil((used_heap_size + external_memory) / 1024 / 1024);
}
