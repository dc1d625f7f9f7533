import type { AnyReason, Reason } from "#shared/kube/reasons.ts";

/**
 * The statuses of kstatus (kubernetes-sigs/cli-utils, pkg/kstatus), and `Unknown` for an object that could not be read
 * or evaluated.
 */
export type HealthStatus = "Unknown" | "NotFound" | "Failed" | "Terminating" | "InProgress" | "Current";

export interface Health {
  readonly status: HealthStatus;
  /** CamelCase; absent for Current, Terminating and NotFound. */
  readonly reason?: AnyReason;
  readonly message: string;
}

/** The reason of a Job that ended without success. */
export const jobFailed = "JobFailed" satisfies Reason;

/** Worst first. */
const severity: readonly HealthStatus[] = ["Unknown", "NotFound", "Failed", "Terminating", "InProgress", "Current"];

/** Sorts the worst first. */
export function compareSeverity(a: HealthStatus, b: HealthStatus): number {
  return severity.indexOf(a) - severity.indexOf(b);
}

/** The worst status of the parts; `Current` without parts. */
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
