import type { AccountPool } from "#local/aws/lambda/account-pool.ts";
import { createLambdaContext, type FunctionIdentity, type LambdaContext } from "#local/aws/lambda/lambda-context.ts";
import type { MemoryUse, Sandbox } from "#local/aws/lambda/sandbox.ts";
import type { SocketFate } from "#local/aws/lambda/sandbox-network.ts";
import { hopsOf, nextTrace } from "#local/aws/lambda/trace-header.ts";
import type { PacedClock } from "#local/base/paced-clock.ts";

export interface FunctionOptions extends FunctionIdentity {
  readonly newSandbox: () => Sandbox;
  /** Whether it is invoked again after its 16th time in one chain. Default `terminate`, as Lambda's. */
  readonly recursiveLoop?: "terminate" | "allow";
  /** Whether a sandbox serves whoever comes (default), or one tenant only. */
  readonly tenancy?: "shared" | "per tenant";
  /** What becomes of a sandbox's idle connections after each invocation. By default they live on. */
  readonly socketFate?: () => SocketFate;
  /**
   * What runs too long, or is killed: `destroyed`, as on Lambda, or `abandoned`: nobody waits for it, and it goes on. Then
   * it is the old worker that wakes up later. Default `destroyed`.
   */
  readonly overrun?: "destroyed" | "abandoned";
  /** What its time limit is measured by; the machine's time by default. */
  readonly clock?: PacedClock;
  /** Whose places it takes, together with others; left out, there is always one. */
  readonly account?: AccountPool;
}

export interface InvocationRequest {
  readonly event: unknown;
  /** Ends the invocation as if its sandbox had died. */
  readonly killed: AbortSignal;
  /** Whose sandbox it is to be, of a function whose sandboxes are each one tenant's. */
  readonly tenantId?: string;
  /** Trace headers of what it was invoked for. */
  readonly traces?: readonly (string | undefined)[];
}

export type InvocationOutcome =
  | { readonly outcome: "returned"; readonly result: unknown }
  | { readonly outcome: "failed"; readonly error: unknown }
  | { readonly outcome: "timeout" }
  | { readonly outcome: "killed" }
  /** It did not run: the account has no place for it. */
  | { readonly outcome: "throttled" };

/** What Lambda's REPORT line says of an invocation. */
export interface InvocationFigures {
  readonly durationMs: number;
  /** Rounded up to the millisecond, as Lambda bills it. */
  readonly billedMs: number;
  readonly memory: MemoryUse & { readonly limitMiB: number };
  /** How often this function was invoked in the chain, this time included. */
  readonly hops: number;
}

export type Invocation = InvocationOutcome & { readonly figures: InvocationFigures };

/** A function as Lambda runs it: as many sandboxes as it has invocations at once, each with one at a time. */
export interface LambdaFunction extends FunctionIdentity, Pick<FunctionOptions, "clock"> {
  readonly recursiveLoop: "terminate" | "allow";
  readonly tenancy: "shared" | "per tenant";
  invoke(request: InvocationRequest): Promise<Invocation>;
  /** Sandboxes that wait for an invocation. */
  idle(): number;
  /** Ends the sandboxes that are idle; those that are not end with what they do. */
  close(): void;
}

const defaultMemoryMiB = 1024;
/** Tenants come and go; Lambda, too, ends the sandboxes that wait longest. */
const maxIdle = 100;

export function lambdaFunction(options: FunctionOptions): LambdaFunction {
  const { newSandbox, socketFate = () => "kept", overrun = "destroyed", recursiveLoop = "terminate" } = options;
  const { tenancy = "shared", account } = options;
  const { functionName, memoryMb: limitMiB = defaultMemoryMiB, clock } = options;
  const nowMs = clock === undefined ? () => performance.now() : () => clock.now().getTime();
  /** With whose they are; one without tenants has them for everybody. */
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

  /** Calls back when the context has no time left, unless it is stopped before. */
  function onTimeout(context: LambdaContext, over: () => void): () => void {
    const look = () => {
      const leftMs = context.getRemainingTimeInMillis();
      if (leftMs > 0) timer = setTimeout(look, Math.ceil(leftMs / (clock?.rate ?? 1)));
      else over();
    };
    let timer: NodeJS.Timeout | undefined;
    look();
    return () => clearTimeout(timer);
  }

  /** The last that was used is the first to be used again, as on Lambda. */
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
