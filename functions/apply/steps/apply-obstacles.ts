import { defined } from "#shared/base/defined.ts";
import type { StatedProblem } from "#shared/fleet/rows/stated-reason.ts";
import type { ApplySetResult } from "#shared/kube/engine/apply-set.ts";
import { longestAskedOf } from "#shared/kube/engine/object-failure.ts";
import { describeObject } from "#shared/kube/object-id.ts";
import type { AnyReason } from "#shared/kube/reasons.ts";

/** Why an apply did not reach every object. */
export interface ApplyObstacles {
  /** Problems of every object that failed. */
  readonly problems: readonly StatedProblem[];
  /** Whether one of them fails again until somebody changes something. */
  readonly final: boolean;
  /** See `longestAskedOf`. */
  readonly notBeforeSeconds?: number;
  /** The first object that was not begun, or that waits for another one. */
  readonly waiting?: { readonly reason: AnyReason; readonly message: string };
}

export function obstaclesOf({ objects }: ApplySetResult): ApplyObstacles {
  const failures = objects.flatMap((object) => (object.outcome === "failed" ? [object] : []));
  const [waiting] = objects.flatMap((object) => ("message" in object ? [object] : []));
  return {
    problems: failures.map(({ id, failure }) => ({
      object: describeObject(id),
      reason: failure.reason,
      message: failure.message,
    })),
    final: failures.some(({ failure }) => !failure.retryable),
    ...defined({ waiting }),
    ...longestAskedOf(failures.map(({ failure }) => failure)),
  };
}
