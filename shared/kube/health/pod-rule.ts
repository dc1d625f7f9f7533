import {
  conditionsOf,
  current,
  failed,
  type Health,
  HealthShapeError,
  inProgress,
  stringField,
} from "#shared/kube/health/status.ts";
import { type KubeObject, listAt, stringAt } from "#shared/kube/kube-object.ts";

export interface PodRuleOptions {
  readonly now: Date;
  /** How long a Pod may be unschedulable before it counts as Failed. */
  readonly unschedulableGraceSeconds: number;
}

export function podHealth(object: KubeObject, options: PodRuleOptions): Health {
  const phase = stringField(object, "status.phase", "");
  switch (phase) {
    case "Succeeded":
      return current("Pod has completed successfully");
    case "Failed":
      return current("Pod has completed, but not successfully");
    case "Running":
      return runningPodHealth(object);
    case "Pending":
      return pendingPodHealth(object, options);
    case "":
      return inProgress("PodNotObserved", "Pod phase not available");
    default:
      throw new HealthShapeError(`unknown phase ${phase}`);
  }
}

function runningPodHealth(object: KubeObject): Health {
  if (conditionsOf(object).some(({ type, status }) => type === "Ready" && status === "True")) {
    return current("Pod is Ready");
  }
  const looping = listAt(object, "status", "containerStatuses")
    .filter((container) => stringAt(container, "state", "waiting", "reason") === "CrashLoopBackOff")
    .map((container) => stringAt(container, "name") ?? "");
  if (looping.length > 0) {
    return failed("ContainerCrashLooping", `Containers in CrashLoop state: ${looping.join(",")}`);
  }
  return inProgress("PodRunningNotReady", "Pod is running but is not Ready");
}

function pendingPodHealth(object: KubeObject, { now, unschedulableGraceSeconds }: PodRuleOptions): Health {
  const unschedulable = conditionsOf(object).some(
    ({ type, status, reason }) => type === "PodScheduled" && status === "False" && reason === "Unschedulable",
  );
  if (!unschedulable) return inProgress("PodPending", "Pod is in the Pending phase");
  const createdAt = Date.parse(stringField(object, "metadata.creationTimestamp", ""));
  if (now.getTime() - unschedulableGraceSeconds * 1000 < createdAt) {
    return inProgress("PodNotScheduled", "Pod has not been scheduled");
  }
  return failed("PodUnschedulable", "Pod could not be scheduled");
}
