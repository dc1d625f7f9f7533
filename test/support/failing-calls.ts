/**
 * Fails calls of a run by their number in their class: to DynamoDB, SQS and S3 at the proxy, to the API servers and to
 * the git server at their own doors. The sandbox that made the call lives on.
 */

import type { InterceptedRequest, Interception } from "@starling/embedded-apiserver";
import type { PlannedFailure } from "#local/aws/proxy/call-failures.ts";
import type { AwsCall } from "#local/aws/wire/aws-call.ts";
import type { Cut } from "#local/git/cut-answer.ts";
import { classOfCall, classOfFetch, classOfRequest } from "#test/support/call-classes.ts";
import type { World } from "#test/support/e2e-world.ts";

export interface CallFailure extends Cut {
  readonly className: string;
  /** Counts the calls of the class, from 1. */
  readonly number: number;
  /** `"attempt"`: whoever made the call makes it again; `"call"`: and fails as often as it tries, so that it gives up. */
  readonly fails: "attempt" | "call";
}

/** More often than any client tries again. */
const triesOfOneCall = 6;

export interface FailingCalls {
  readonly disturbGit: (request: { readonly method: string; readonly path: string }) => Cut | undefined;
  /** From now on the calls of this world are counted. */
  begin(world: World): void;
  /** How many calls of each class there were. */
  counts(): ReadonlyMap<string, number>;
  /** Failures whose calls were made. */
  fired(): readonly CallFailure[];
}

export function failingCalls(failures: readonly CallFailure[]): FailingCalls {
  const planned = Map.groupBy(failures, ({ className }) => className);
  const counts = new Map<string, number>();
  const fired = new Set<CallFailure>();
  /** Those that the proxy makes. */
  const atProxy = new Map<CallFailure, PlannedFailure>();
  /** Of requests that fail again when they are tried again. */
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
