import type { Clock } from "#shared/base/clock.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import type { Reason } from "#shared/kube/reasons.ts";

export interface OwnDeadline {
  readonly clock: Clock;
  /** Nothing begins after this time. */
  readonly deadline: Date;
}

export const outOfTime = {
  reason: "OutOfTime",
  message: "the time of this run is up; the next run continues",
} as const satisfies {
  readonly reason: Reason;
  readonly message: string;
};

export function isOutOfTime({ clock, deadline }: OwnDeadline): boolean {
  return clock.now() >= deadline;
}

/**
 * Starling's own deadline cut off the request. This says nothing about the cluster, and the next run sees the outcome.
 */
export function isCutOff(error: unknown, own: OwnDeadline): boolean {
  return error instanceof KubeError && error.status === undefined && isOutOfTime(own);
}
