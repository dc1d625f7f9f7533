import type { AwsCall } from "#local/aws/wire/aws-call.ts";

export interface FailCallOptions {
  /** Counts only the calls for which this holds. */
  readonly where?: (call: AwsCall) => boolean;
  /**
   * Fails also the SDK's own retries of the call, so that the caller sees the failure. Without it only one attempt fails,
   * and in standard retry mode the SDK's next attempt succeeds.
   */
  readonly everyAttempt?: true;
  /** How the caller learns of it: its connection breaks, or the service answers 500 or 503. Default `"reset"`. */
  readonly as?: FailureForm;
}

export type FailureForm = "reset" | "serverError";

export interface FailureVerdict {
  readonly when: "before" | "after";
  readonly as: FailureForm;
}

export interface PlannedFailure {
  /** Whether the call was reached. */
  fired(): boolean;
  cancel(): void;
}

export interface CallFailures {
  plan(n: number, when: "before" | "after", options?: FailCallOptions): PlannedFailure;
  /** To be asked once per call, in the order of arrival. */
  verdict(call: AwsCall): FailureVerdict | undefined;
}

interface Plan {
  left: number;
  readonly when: "before" | "after";
  readonly options: FailCallOptions;
  hit: string | undefined;
}

/** Failures of exactly the n-th call from now: for tests that crash at every call in turn. */
export function createCallFailures(): CallFailures {
  const plans = new Set<Plan>();

  function judge(plan: Plan, call: AwsCall): FailureVerdict | undefined {
    const { as = "reset", everyAttempt } = plan.options;
    if (plan.hit !== undefined) {
      return everyAttempt && plan.hit === call.invocationId ? { when: "before", as } : undefined;
    }
    if (plan.options.where?.(call) === false) return undefined;
    plan.left -= 1;
    if (plan.left > 0) return undefined;
    plan.hit = call.invocationId;
    return { when: plan.when, as };
  }

  return {
    plan(n, when, options = {}) {
      const plan: Plan = { left: n, when, options, hit: undefined };
      plans.add(plan);
      return { fired: () => plan.hit !== undefined, cancel: () => void plans.delete(plan) };
    },
    verdict(call) {
      const verdicts = [...plans].map((plan) => judge(plan, call));
      return verdicts.find((verdict) => verdict !== undefined);
    },
  };
}
