import { defined } from "#shared/base/defined.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { isOwnFault } from "#shared/base/own-fault.ts";
import type { ApplyErrorClass } from "#shared/kube/apply-error.ts";
import { isOfCredentials } from "#shared/kube/engine/credential-codes.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import { type AnyReason, type Reason, reportedReason } from "#shared/kube/reasons.ts";

/** Why something could not be done to one object; bounded, without values of Secrets. */
export interface ObjectFailure {
  /** `ours`: what is needed to ask the cluster could not be had, for the moment. */
  readonly class: ApplyErrorClass | "foreign" | "ours";
  /** CamelCase, for conditions: `Invalid`, `NoMatch`, `ForeignOwner`. */
  readonly reason: AnyReason;
  readonly message: string;
  /** Whether the same revision may succeed later. */
  readonly retryable: boolean;
  /** Whether a write may have been carried out all the same. */
  readonly outcomeUnknown: boolean;
  /** What the server asked us to wait. */
  readonly retryAfterSeconds?: number;
}

/**
 * The failure of one object, from what a client threw. Anything but a failed request or a failed credential is a fault
 * of ours and thrown on.
 */
export function failureOf(error: unknown): ObjectFailure {
  if (isOwnFault(error)) throw error;
  if (error instanceof KubeError) {
    return {
      class: error.class,
      reason: reportedReason(error.reason),
      message: error.message,
      retryable: error.verdict.retryable,
      outcomeUnknown: error.verdict.outcomeUnknown,
      ...defined({ retryAfterSeconds: error.retryAfterSeconds }),
    };
  }
  if (error instanceof StarlingError) {
    const retryable = error.retry === "transient";
    const whose = isOfCredentials(error.code) ? "auth" : "ours";
    return {
      class: whose,
      reason: reportedReason(error.code),
      message: error.message,
      retryable,
      outcomeUnknown: false,
    };
  }
  throw error;
}

export function definiteFailure(
  failure: Pick<ObjectFailure, "class" | "reason" | "message"> & { readonly retryable?: boolean },
): ObjectFailure {
  return { retryable: false, ...failure, outcomeUnknown: false };
}

/** The longest that the server asked us to wait for one of them. */
export function longestAskedOf(failures: readonly ObjectFailure[]): { readonly notBeforeSeconds?: number } {
  const asked = failures.flatMap(({ retryAfterSeconds }) => retryAfterSeconds ?? []);
  return asked.length === 0 ? {} : { notBeforeSeconds: Math.max(...asked) };
}

/**
 * The cluster as a whole does not answer or does not let us in, or cannot be asked: there is no point in trying the next
 * object.
 */
export function endsTheRun(failure: ObjectFailure): boolean {
  return failure.class === "unreachable" || failure.class === "auth" || failure.class === "ours";
}

/** What was answered to a list was not taken: nothing can be said of the Sync as a whole, and that is to be told. */
export function endsTheCheck(failure: ObjectFailure): boolean {
  return endsTheRun(failure) || notTaken.has(failure.reason);
}

const notTaken: ReadonlySet<string> = new Set<Reason>([
  "AnswerMalformed",
  "AnswerTooLarge",
  "AnswersTooLarge",
  "ListTooLong",
]);
