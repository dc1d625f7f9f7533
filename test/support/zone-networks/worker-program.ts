/**
 * The workers of a zone: the function `apply` in a process and a network namespace of its own. Its loopback interface
 * has the emulators of AWS, at the same addresses as outside.
 */
import { execFileSync } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { applyEnv } from "#functions/apply/env.ts";
import { wireApply } from "#functions/apply/wire.ts";
import type { LambdaContext } from "#local/aws/lambda/lambda-context.ts";
import type { SleepingClock } from "#shared/base/clock.ts";
import { clusterClients } from "#shared/lambda/cluster-clients.ts";
import type { ClientCredentials } from "#shared/lambda/core-clients.ts";
import { parseEnv } from "#shared/lambda/parse-env.ts";
import type { SqsEvent, SqsHandler } from "#shared/lambda/sqs-handler.ts";
import { answerParent, passConnections } from "#test/support/zone-networks/in-namespace.ts";

export interface Wiring {
  readonly variables: Readonly<Record<string, string>>;
  readonly region: string;
  readonly credentials: ClientCredentials;
  readonly endpoints: Readonly<Record<"dynamo" | "sqs" | "s3" | "secrets" | "sts" | "eks", string>>;
}

export type WorkerQuestion =
  | { readonly kind: "open"; readonly rate: number }
  /** The time of the parent's clock, in milliseconds. */
  | { readonly kind: "time"; readonly now: number }
  | {
      readonly kind: "invoke";
      /** Each sandbox has its own clients and connections. */
      readonly sandbox: number;
      readonly wiring: Wiring;
      readonly event: SqsEvent;
      readonly context: Omit<LambdaContext, "getRemainingTimeInMillis">;
      readonly remainingMs: number;
    };

/** The clock stands still when the parent does not send the time for longer. */
const mostAheadMs = 250;

const sandboxes = new Map<number, Promise<SqsHandler>>();
const relayed = new Set<number>();
let rate = 1;
let parentTime = { now: 0, at: 0 };
/** The clock of the parent, so that functions inside and outside agree. */
const clock: SleepingClock = {
  now: () => new Date(parentTime.now + Math.min(performance.now() - parentTime.at, mostAheadMs) * rate),
  async sleep(milliseconds) {
    const until = clock.now().getTime() + milliseconds;
    for (let left = milliseconds; left > 0; left = until - clock.now().getTime()) await sleep(Math.ceil(left / rate));
  },
};

answerParent((question: WorkerQuestion) => {
  if (question.kind === "invoke") return invoke(question);
  if (question.kind === "time") {
    parentTime = { now: Math.max(question.now, clock.now().getTime()), at: performance.now() };
    return undefined;
  }
  rate = question.rate;
  execFileSync("ip", ["link", "set", "lo", "up"], { stdio: "pipe" });
  return undefined;
});

async function invoke({ sandbox, wiring, event, context, remainingMs }: WorkerQuestion & { readonly kind: "invoke" }) {
  const handler = sandboxes.get(sandbox) ?? wired(wiring);
  sandboxes.set(sandbox, handler);
  const deadline = clock.now().getTime() + remainingMs;
  const getRemainingTimeInMillis = () => Math.max(0, deadline - clock.now().getTime());
  return (await handler)(event, { ...context, getRemainingTimeInMillis } as LambdaContext);
}

async function wired({ variables, ...clients }: Wiring): Promise<SqsHandler> {
  for (const endpoint of Object.values(clients.endpoints)) await relay(Number(new URL(endpoint).port));
  return wireApply(parseEnv(applyEnv, variables), clusterClients(clients), { clock });
}

async function relay(port: number): Promise<void> {
  if (relayed.has(port)) return;
  relayed.add(port);
  await passConnections("127.0.0.1", port);
}
