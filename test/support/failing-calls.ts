/**
 * Makes calls of a run fail by their number in their class: calls to DynamoDB, SQS and S3 at the proxy, calls to the
 * API servers and to the git server at these servers. The sandbox of the caller survives.
 */

import type { InterceptedRequest, Interception } from "@starling/embedded-apiserver";
import type { PlannedFailure } from "#local/aws/proxy/call-failures.ts";
import type { AwsCall } from "#local/aws/wire/aws-call.ts";
import type { Cut } from "#local/git/cut-answer.ts";
import { classOfCall, classOfFetch, classOfRequest } from "#test/support/call-classes.ts";
import type { World } from "#test/support/e2e-world.ts";

export interface CallFailure extends Cut {
  readonly className: string;
  /** The number of the call in its class, from 1. */
  readonly number: number;
  /**
   * With `"attempt"` only one attempt fails, and the client's next one succeeds. With `"call"` all attempts fail, so
   * that the client gives up.
   */
  readonly fails: "attempt" | "call";
}

/** More attempts than any client makes. */
const triesOfOneCall = 6;

export interface FailingCalls {
  readonly disturbGit: (request: { readonly method: string; readonly path: string }) => Cut | undefined;
  /** Counts the calls of this world from now on. */
  begin(world: World): void;
  /** The number of calls of each class. */
  counts(): ReadonlyMap<string, number>;
  /** The failures that have happened. */
  fired(): readonly CallFailure[];
}

export function failingCalls(failures: readonly CallFailure[]): FailingCalls {
  const planned = Map.groupBy(failures, ({ className }) => className);
  const counts = new Map<string, number>();
  const fired = new Set<CallFailure>();
  /** The failures that the proxy injects. */
  const atProxy = new Map<CallFailure, PlannedFailure>();
  /** Failures that also apply to the next attempts of a request. */
  const again = new Map<string, { readonly failure: CallFailure; left: number }>();

  function count(className: string): number {
    const number = (counts.get(className) ?? 0) + 1;
    counts.set(className, number);
    return number;
  }

  function dueNow(className: string): CallFailure | undefined {
    const number = count(className);
    return planned.get(className)?.find((candidate) => candidate.number === number);
  }

  function onKubeRequest({ cluster, method, path, phase }: InterceptedRequest): Interception {
    const key = `${cluster} ${method} ${path}`;
    const repeated = again.get(key);
    if (phase === "before" && repeated !== undefined) {
      repeated.left -= 1;
      if (repeated.left <= 0) again.delete(key);
      return interception(repeated.failure);
    }
    const due = phase === "before" ? dueNow(classOfRequest({ method, path })) : afterEffect.get(key);
    if (due === undefined) return "pass";
    if (phase === "before" && due.when === "after") {
      afterEffect.set(key, due);
      return "pass";
    }
    afterEffect.delete(key);
    fired.add(due);
    if (due.fails === "call") again.set(key, { failure: due, left: triesOfOneCall - 1 });
    return interception(due);
  }
  const afterEffect = new Map<string, CallFailure>();

  return {
    disturbGit(request) {
      const due = dueNow(classOfFetch(request));
      if (due !== undefined) fired.add(due);
      return due;
    },
    begin({ machine, fleet }) {
      const { credentials } = machine.api;
      for (const failure of failures) {
        const { className, number, when, as, fails } = failure;
        if (className.startsWith("kube ") || className.startsWith("git ")) continue;
        const where = (call: AwsCall) => classOfCall(call, credentials) === className;
        const everyAttempt = fails === "call" ? ({ everyAttempt: true } as const) : {};
        atProxy.set(failure, machine.proxy.failCall(number, when, { as, where, ...everyAttempt }));
      }
      machine.proxy.intercept({
        before(call) {
          const className = classOfCall(call, credentials);
          if (className !== undefined) count(className);
        },
      });
      fleet.intercept(onKubeRequest);
    },
    counts: () => counts,
    fired: () => [...fired, ...[...atProxy].filter(([, planned]) => planned.fired()).map(([failure]) => failure)],
  };
}

function interception({ as }: Cut): Interception {
  if (as === "reset") return "reset";
  const message = "etcdserver: leader changed";
  return {
    status: 500,
    body: { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, code: 500 },
  };
}
