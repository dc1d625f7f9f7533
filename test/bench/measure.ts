import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { ClientRequest } from "node:http";
import { Steps } from "#test/bench/steps.ts";

export interface Measurement<T = void> {
  /** What came of it. */
  readonly value: T;
  readonly ms: number;
  /** User and system time of this process. */
  readonly cpuMs: number;
  /** Requests begun, by the host and port they went to. */
  readonly requests: ReadonlyMap<string, number>;
  /** Those that waited for each other. */
  readonly steps: readonly string[];
}

const requestStarted = "http.client.request.start";

/** What a piece of work of this process takes, with the HTTP requests it makes. */
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
