import { defined } from "#shared/base/defined.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { isOwnFault } from "#shared/base/own-fault.ts";
import type { ApplyErrorClass } from "#shared/kube/apply-error.ts";
import { isOfCredentials } from "#shared/kube/engine/credential-codes.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import { type AnyReason, type Reason, reportedReason } from "#shared/kube/reasons.ts";

/** Why an operation on one object failed. The message is bounded, and contains no values of Secrets. */
export interface ObjectFailure {
  /** `ours`: Starling temporarily lacks something that it needs to ask the cluster. */
  readonly class: ApplyErrorClass | "foreign" | "ours";
  /** CamelCase, for conditions, such as `Invalid`, `NoMatch` or `ForeignOwner`. */
  readonly reason: AnyReason;
  readonly message: string;
  /** Whether the same revision can succeed later. */
  readonly retryable: boolean;
  /** Whether a write may have happened nevertheless. */
  readonly outcomeUnknown: boolean;
  /** How long the server asked Starling to wait. */
  readonly retryAfterSeconds?: number;
}

/**
 * Converts an error of a client to the failure of one object. An error that is neither a failed request nor a
 * credential failure is Starling's own fault, and is thrown again.
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

/** The longest wait that the server asked for. */
export function longestAskedOf(failures: readonly ObjectFailure[]): { readonly notBeforeSeconds?: number } {
  const asked = failures.flatMap(({ retryAfterSeconds }) => retryAfterSeconds ?? []);
  return asked.length === 0 ? {} : { notBeforeSeconds: Math.max(...asked) };
}

/**
 * The cluster as a whole does not answer, refuses access, or cannot be asked, so that trying the next object is
 * useless.
 */
export function endsTheRun(failure: ObjectFailure): boolean {
  return failure.class === "unreachable" || failure.class === "auth" || failure.class === "ours";
}

/**
 * Starling did not accept the answer to a list. Nothing can then be said about the whole Sync, and the failure is
 * reported.
 */
export function endsTheCheck(failure: ObjectFailure): boolean {
  return endsTheRun(failure) || notTaken.has(failure.reason);
}

const notTaken: ReadonlySet<string> = new Set<Reason>([
  "AnswerMalformed",
  "AnswerTooLarge",
  "AnswersTooLarge",
  "ListTooLong",
]);
