import type { Clock } from "#shared/base/clock.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import type { Reason } from "#shared/kube/reasons.ts";

export interface OwnDeadline {
  readonly clock: Clock;
  /** Nothing is begun after this. */
  readonly deadline: Date;
}

export const outOfTime = {
  reason: "OutOfTime",
  message: "the time of this run was up; the next one goes on",
} as const satisfies {
  readonly reason: Reason;
  readonly message: string;
};

export function isOutOfTime({ clock, deadline }: OwnDeadline): boolean {
  return clock.now() >= deadline;
}

/** Cut off by our own deadline: that says nothing of the cluster, and what became of the request is seen next time. */
export function isCutOff(error: unknown, own: OwnDeadline): boolean {
  return error instanceof KubeError && error.status === undefined && isOutOfTime(own);
}
