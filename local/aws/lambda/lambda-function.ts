import type { AccountPool } from "#local/aws/lambda/account-pool.ts";
import { createLambdaContext, type FunctionIdentity, type LambdaContext } from "#local/aws/lambda/lambda-context.ts";
import type { MemoryUse, Sandbox } from "#local/aws/lambda/sandbox.ts";
import type { SocketFate } from "#local/aws/lambda/sandbox-network.ts";
import { hopsOf, nextTrace } from "#local/aws/lambda/trace-header.ts";
import type { PacedClock } from "#local/base/paced-clock.ts";

export interface FunctionOptions extends FunctionIdentity {
  readonly newSandbox: () => Sandbox;
  /** Whether the function is invoked again after 16 times in one chain. The default is Lambda's, `terminate`. */
  readonly recursiveLoop?: "terminate" | "allow";
  /** Whether a sandbox serves all requests (the default) or one tenant only. */
  readonly tenancy?: "shared" | "per tenant";
  /** The state of a sandbox's idle connections after each invocation. By default they stay open. */
  readonly socketFate?: () => SocketFate;
  /**
   * The fate of an invocation that times out or is killed. `destroyed`, the default, ends its sandbox, as on Lambda.
   * `abandoned` lets it continue while nobody waits for it, like an old worker that wakes up later.
   */
  readonly overrun?: "destroyed" | "abandoned";
  /** The clock for the time limit. The default is the machine's clock. */
  readonly clock?: PacedClock;
  /** The account whose slots the function shares with others. Without an account, a slot is always free. */
  readonly account?: AccountPool;
}

export interface InvocationRequest {
  readonly event: unknown;
  /** Ends the invocation as if its sandbox had died. */
  readonly killed: AbortSignal;
  /** The tenant of the invocation, for a function whose sandboxes serve one tenant each. */
  readonly tenantId?: string;
  /** The trace headers of the messages or requests that cause the invocation. */
  readonly traces?: readonly (string | undefined)[];
}

export type InvocationOutcome =
  | { readonly outcome: "returned"; readonly result: unknown }
  | { readonly outcome: "failed"; readonly error: unknown }
  | { readonly outcome: "timeout" }
  | { readonly outcome: "killed" }
  /** The function did not run, because the account has no free slot. */
  | { readonly outcome: "throttled" };

/** The figures of Lambda's REPORT line. */
export interface InvocationFigures {
  readonly durationMs: number;
  /** Rounded up to the millisecond, as Lambda bills. */
  readonly billedMs: number;
  readonly memory: MemoryUse & { readonly limitMiB: number };
  /** The number of invocations of this function in the chain, including this one. */
  readonly hops: number;
}

export type Invocation = InvocationOutcome & { readonly figures: InvocationFigures };

/**
 * A function as Lambda runs it. It has one sandbox per concurrent invocation, and a sandbox runs one invocation at a
 * time.
 */
export interface LambdaFunction extends FunctionIdentity, Pick<FunctionOptions, "clock"> {
  readonly recursiveLoop: "terminate" | "allow";
  readonly tenancy: "shared" | "per tenant";
  invoke(request: InvocationRequest): Promise<Invocation>;
  /** The number of idle sandboxes. */
  idle(): number;
  /** Ends idle sandboxes now, and busy ones after their invocation. */
  close(): void;
}

const defaultMemoryMiB = 1024;
/**
 * Above this number the sandbox that has been idle longest ends, as on Lambda. Otherwise sandboxes of former tenants
 * would pile up.
 */
const maxIdle = 100;

export function lambdaFunction(options: FunctionOptions): LambdaFunction {
  const { newSandbox, socketFate = () => "kept", overrun = "destroyed", recursiveLoop = "terminate" } = options;
  const { tenancy = "shared", account } = options;
  const { functionName, memoryMb: limitMiB = defaultMemoryMiB, clock } = options;
  const nowMs = clock === undefined ? () => performance.now() : () => clock.now().getTime();
  /** The idle sandboxes and their tenants; the tenant is empty for a function without tenants. */
  const idle: { readonly sandbox: Sandbox; readonly tenantId: string }[] = [];
  let closed = false;

  async function invoke(request: InvocationRequest): Promise<Invocation> {
    if (account?.enter() === false) {
      return { outcome: "throttled", figures: figuresOf(performance.now(), nextTrace(functionName, [])) };
    }
    try {
      return await run(request);
    } finally {
      account?.leave();
    }
  }

  async function run({ event, killed, tenantId = "", traces = [] }: InvocationRequest): Promise<Invocation> {
    const startedAt = performance.now();
    const trace = nextTrace(functionName, traces);
    const sandbox = take(tenantId);
    if (sandbox instanceof Error) return { outcome: "failed", error: sandbox, figures: figuresOf(startedAt, trace) };
    const { promise: interrupted, resolve: interrupt } = Promise.withResolvers<InvocationOutcome>();
    const context = createLambdaContext(options, nowMs);
    const stopTimer = onTimeout(context, () => interrupt({ outcome: "timeout" }));
    const onKill = () => interrupt({ outcome: "killed" });
    killed.addEventListener("abort", onKill);
    try {
      const outcome = await Promise.race([interrupted, outcomeOf(sandbox.execute({ event, context, trace }))]);
      const figures = figuresOf(startedAt, trace, sandbox.memory());
      putBack({ sandbox, tenantId }, outcome);
      return { ...outcome, figures };
    } finally {
      stopTimer();
      killed.removeEventListener("abort", onKill);
    }
  }

  /** Calls back when the context has no time left. @returns a function that cancels the callback. */
  function onTimeout(context: LambdaContext, over: () => void): () => void {
    const check = () => {
      const leftMs = context.getRemainingTimeInMillis();
      if (leftMs > 0) timer = setTimeout(check, Math.ceil(leftMs / (clock?.rate ?? 1)));
      else over();
    };
    let timer: NodeJS.Timeout | undefined;
    check();
    return () => clearTimeout(timer);
  }

  /** Takes the sandbox that was used last, as Lambda does. */
  function take(tenantId: string): Sandbox | Error {
    const index = idle.findLastIndex((each) => each.tenantId === tenantId);
    const [found] = index < 0 ? [] : idle.splice(index, 1);
    try {
      return found?.sandbox ?? newSandbox();
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  }

  function figuresOf(startedAt: number, trace: string, memory?: MemoryUse): InvocationFigures {
    const durationMs = performance.now() - startedAt;
    const use = memory ?? { peakMiB: 0, of: "sandbox" };
    const hops = hopsOf(trace, functionName);
    return { durationMs, billedMs: Math.ceil(durationMs), memory: { ...use, limitMiB }, hops };
  }

  function putBack(used: (typeof idle)[number], { outcome }: InvocationOutcome): void {
    const { sandbox } = used;
    const over = outcome === "timeout" || outcome === "killed";
    if (over && overrun === "abandoned") return;
    if (over || closed || sandbox.broken()) {
      sandbox.destroy();
      return;
    }
    sandbox.freeze(socketFate());
    idle.push(used);
    if (idle.length > maxIdle) idle.shift()?.sandbox.destroy();
  }

  return {
    ...options,
    recursiveLoop,
    tenancy,
    invoke,
    idle: () => idle.length,
    close() {
      closed = true;
      for (const { sandbox } of idle.splice(0)) sandbox.destroy();
    },
  };
}

async function outcomeOf(execution: Promise<unknown>): Promise<InvocationOutcome> {
  try {
    return { outcome: "returned", result: await execution };
  } catch (error) {
    return { outcome: "failed", error };
  }
}
