import type { AnyReason, Reason } from "#shared/kube/reasons.ts";

/**
 * kstatus' words for where an object is (kubernetes-sigs/cli-utils, pkg/kstatus), plus `Unknown` for what could not
 * be read or computed.
 */
export type HealthStatus = "Unknown" | "NotFound" | "Failed" | "Terminating" | "InProgress" | "Current";

export interface Health {
  readonly status: HealthStatus;
  /** CamelCase; absent for Current, Terminating and NotFound. */
  readonly reason?: AnyReason;
  readonly message: string;
}

/** The reason of a Job that came to its end without success. */
export const jobFailed = "JobFailed" satisfies Reason;

/** Worst first. */
const severity: readonly HealthStatus[] = ["Unknown", "NotFound", "Failed", "Terminating", "InProgress", "Current"];

/** For sorting the worst to the front. */
export function compareSeverity(a: HealthStatus, b: HealthStatus): number {
  return severity.indexOf(a) - severity.indexOf(b);
}

/** The least ready of the parts; `Current` when there are none. */
export function worstOf(statuses: Iterable<HealthStatus>): HealthStatus {
  let worst: HealthStatus = "Current";
  for (const status of statuses) if (compareSeverity(status, worst) < 0) worst = status;
  return worst;
}

export function current(message: string): Health {
  return { status: "Current", message };
}

export function inProgress(reason: AnyReason, message: string): Health {
  return { status: "InProgress", reason, message };
}

export function failed(reason: AnyReason, message: string): Health {
  return { status: "Failed", reason, message };
}

export function unknown(reason: AnyReason, message: string): Health {
  return { status: "Unknown", reason, message };
}
