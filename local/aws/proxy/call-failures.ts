import type { AwsCall } from "#local/aws/wire/aws-call.ts";

export interface FailCallOptions {
  /** Counts only the calls that match. */
  readonly where?: (call: AwsCall) => boolean;
  /**
   * Makes the SDK's retries of the call fail, too, so that the caller sees the failure. Without it only one attempt
   * fails, and the SDK's next attempt succeeds in standard retry mode.
   */
  readonly everyAttempt?: true;
  /** The form of the failure: a broken connection, or a 500 or 503 of the service. The default is `"reset"`. */
  readonly as?: FailureForm;
}

export type FailureForm = "reset" | "serverError";

export interface FailureVerdict {
  readonly when: "before" | "after";
  readonly as: FailureForm;
}

export interface PlannedFailure {
  /** Whether the planned call has happened. */
  fired(): boolean;
  cancel(): void;
}

export interface CallFailures {
  plan(n: number, when: "before" | "after", options?: FailCallOptions): PlannedFailure;
  /** Must be called once per call, in call order. */
  verdict(call: AwsCall): FailureVerdict | undefined;
}

interface Plan {
  left: number;
  readonly when: "before" | "after";
  readonly options: FailCallOptions;
  hit: string | undefined;
}

/** Makes exactly the n-th call from now fail, for tests that crash at every call in turn. */
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
