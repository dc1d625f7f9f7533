/**
 * Sandboxes that die at a chosen call. Every request of a function to AWS or an API server is counted in its
 * invocation. A dead invocation sends no more requests. As on Lambda, a sandbox serves one invocation at a time, and
 * its connections and caches die with it.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { ClientRequest, IncomingMessage } from "node:http";
import type { LambdaHandler } from "#local/aws/lambda/lambda-context.ts";
import type { MachineOptions } from "#local/machine/machine.ts";

export interface OutgoingCall {
  readonly functionName: string;
  /** The number of the invocation of this function, from 1. */
  readonly invocation: number;
  /** The number of the call in its invocation, from 1. */
  readonly number: number;
  readonly what: string;
}

/** With `before` the call is not sent. With `after` it has its effect, and its answer is lost. */
export type Death = "before" | "after";

export interface MortalSandboxes {
  readonly sandboxes: NonNullable<MachineOptions["sandboxes"]>;
  /** Sets the function that decides about each call. There is at most one. */
  judgeBy(judge: ((call: OutgoingCall) => Death | undefined) | undefined): void;
  /** Calls back when an invocation has ended, with its number of calls. */
  onEnd(
    listener: (end: { readonly functionName: string; readonly invocation: number; readonly calls: number }) => void,
  ): void;
  /** The calls at which sandboxes died. */
  deaths(): readonly (OutgoingCall & { readonly death: Death })[];
  stop(): void;
}

interface Invocation {
  readonly functionName: string;
  readonly number: number;
  calls: number;
  dead: boolean;
  readonly die: () => void;
}

class SandboxDied extends Error {
  /** The code of a broken connection, so that clients treat it as one. */
  readonly code = "ECONNRESET";

  constructor() {
    super("the sandbox died");
  }
}

export function mortalSandboxes(): MortalSandboxes {
  const current = new AsyncLocalStorage<Invocation>();
  const counts = new Map<string, number>();
  const dyingAfter = new WeakMap<ClientRequest, Invocation>();
  const deaths: (OutgoingCall & { readonly death: Death })[] = [];
  let judge: ((call: OutgoingCall) => Death | undefined) | undefined;
  let ended: Parameters<MortalSandboxes["onEnd"]>[0] = () => {};

  function onRequest(message: unknown): void {
    const { request } = message as { readonly request: ClientRequest };
    const invocation = current.getStore();
    if (invocation === undefined) return;
    if (!invocation.dead) {
      invocation.calls += 1;
      const { functionName, number } = invocation;
      const call = { functionName, invocation: number, number: invocation.calls, what: describe(request) };
      const death = judge?.(call);
      if (death !== undefined) deaths.push({ ...call, death });
      if (death === "after") dyingAfter.set(request, invocation);
      if (death === "before") invocation.die();
    }
    if (invocation.dead) request.destroy(new SandboxDied());
  }

  function onResponse(message: unknown): void {
    const { request, response } = message as { readonly request: ClientRequest; readonly response: IncomingMessage };
    const invocation = dyingAfter.get(request);
    if (invocation === undefined) return;
    invocation.die();
    response.destroy(new SandboxDied());
  }

  function nextNumber(functionName: string): number {
    const number = (counts.get(functionName) ?? 0) + 1;
    counts.set(functionName, number);
    return number;
  }

  function sandboxes(functionName: string, wire: () => LambdaHandler): LambdaHandler {
    const idle: LambdaHandler[] = [];
    return async (event, context) => {
      const sandbox = idle.pop() ?? wire();
      const died = Promise.withResolvers<never>();
      const invocation: Invocation = {
        functionName,
        number: nextNumber(functionName),
        calls: 0,
        dead: false,
        die() {
          invocation.dead = true;
          died.reject(new SandboxDied());
        },
      };
      const work = current.run(invocation, async () => sandbox(event, context));
      try {
        const result = await Promise.race([died.promise, work]);
        idle.push(sandbox);
        return result;
      } finally {
        ended({ functionName, invocation: invocation.number, calls: invocation.calls });
      }
    };
  }

  subscribe("http.client.request.created", onRequest);
  subscribe("http.client.response.finish", onResponse);
  return {
    sandboxes,
    judgeBy(next) {
      judge = next;
    },
    onEnd(listener) {
      ended = listener;
    },
    deaths: () => deaths,
    stop() {
      unsubscribe("http.client.request.created", onRequest);
      unsubscribe("http.client.response.finish", onResponse);
    },
  };
}

function describe(request: ClientRequest): string {
  const target = request.getHeader("x-amz-target");
  return target === undefined ? `${request.method} ${request.path}` : String(target);
}
