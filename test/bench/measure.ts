import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { ClientRequest } from "node:http";
import { Steps } from "#test/bench/steps.ts";

export interface Measurement<T = void> {
  /** The result of the work. */
  readonly value: T;
  readonly ms: number;
  /** The user and system time of this process. */
  readonly cpuMs: number;
  /** The number of started requests by host and port. */
  readonly requests: ReadonlyMap<string, number>;
  /** The requests that waited for one another. */
  readonly steps: readonly string[];
}

const requestStarted = "http.client.request.start";

/** Measures a piece of work of this process, with its HTTP requests. */
export async function measured<T>(work: () => Promise<T>): Promise<Measurement<T>> {
  const requests = new Map<string, number>();
  const count = (message: unknown) => {
    const host = String((message as { readonly request: ClientRequest }).request.getHeader("host"));
    requests.set(host, (requests.get(host) ?? 0) + 1);
  };
  const steps = new Steps();
  subscribe(requestStarted, count);
  steps.start();
  try {
    const cpu = process.cpuUsage();
    const started = performance.now();
    const value = await work();
    const endMs = performance.now();
    const { user, system } = process.cpuUsage(cpu);
    return { value, ms: endMs - started, cpuMs: (user + system) / 1000, requests, steps: steps.read(endMs) };
  } finally {
    unsubscribe(requestStarted, count);
    steps.stop();
  }
}
