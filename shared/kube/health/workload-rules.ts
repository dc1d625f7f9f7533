import {
  conditionsOf,
  current,
  failed,
  type Health,
  inProgress,
  integerField,
  jobFailed,
  stringField,
} from "#shared/kube/health/status.ts";
import { type KubeObject, valueAt } from "#shared/kube/kube-object.ts";

/**
 * kstatus' default of progressDeadlineSeconds. The deadline is then off, and the condition Progressing is not required.
 */
const noDeadline = 2147483647;

export function deploymentHealth(object: KubeObject): Health {
  let progressing = integerField(object, "spec.progressDeadlineSeconds", noDeadline) === noDeadline;
  let available = false;
  for (const condition of conditionsOf(object)) {
    if (condition.type === "Progressing") {
      if (condition.reason === "ProgressDeadlineExceeded") {
        return failed(condition.reason, "Progress deadline exceeded");
      }
      if (condition.status === "True" && condition.reason === "NewReplicaSetAvailable") progressing = true;
    }
    if (condition.type === "Available" && condition.status === "True") available = true;
  }
  const desired = integerField(object, "spec.replicas", 1);
  const replicas = integerField(object, "status.replicas", 0);
  const updated = integerField(object, "status.updatedReplicas", 0);
  const ready = integerField(object, "status.readyReplicas", 0);
  const availableReplicas = integerField(object, "status.availableReplicas", 0);
  if (desired > replicas) return inProgress("LessReplicas", `Replicas: ${replicas}/${desired}`);
  if (desired > updated) return inProgress("LessUpdated", `Updated: ${updated}/${desired}`);
  if (replicas > desired) return inProgress("ExtraPods", `Pending termination: ${replicas - desired}`);
  if (updated > availableReplicas) return inProgress("LessAvailable", `Available: ${availableReplicas}/${updated}`);
  if (desired > ready) return inProgress("LessReady", `Ready: ${ready}/${desired}`);
  if (!progressing) return inProgress("ReplicaSetNotAvailable", "ReplicaSet not Available");
  if (!available) return inProgress("DeploymentNotAvailable", "Deployment not Available");
  return current(`Deployment is available. Replicas: ${replicas}`);
}

export function statefulSetHealth(object: KubeObject): Health {
  if (stringField(object, "spec.updateStrategy.type", "") === "OnDelete") {
    return current("StatefulSet is using the ondelete update strategy");
  }
  const desired = integerField(object, "spec.replicas", 1);
  const replicas = integerField(object, "status.replicas", 0);
  const ready = integerField(object, "status.readyReplicas", 0);
  const currentReplicas = integerField(object, "status.currentReplicas", 0);
  const updated = integerField(object, "status.updatedReplicas", 0);
  const partition = integerField(object, "spec.updateStrategy.rollingUpdate.partition", -1);
  if (desired > replicas) return inProgress("LessReplicas", `Replicas: ${replicas}/${desired}`);
  if (desired > ready) return inProgress("LessReady", `Ready: ${ready}/${desired}`);
  if (replicas > desired) return inProgress("ExtraPods", `Pending termination: ${replicas - desired}`);
  if (partition !== -1) {
    if (updated < desired - partition) {
      return inProgress("PartitionRollout", `updated: ${updated}/${desired - partition}`);
    }
    return current(`Partition rollout complete. updated: ${updated}`);
  }
  if (desired > currentReplicas) return inProgress("LessCurrent", `current: ${currentReplicas}/${desired}`);
  if (stringField(object, "status.currentRevision", "") !== stringField(object, "status.updateRevision", "")) {
    return inProgress("RevisionMismatch", "Waiting for updated revision to match current");
  }
  return current(`All replicas scheduled as expected. Replicas: ${replicas}`);
}

export function replicaSetHealth(object: KubeObject): Health {
  if (conditionsOf(object).some(({ type, status }) => type === "ReplicaFailure" && status === "True")) {
    return inProgress("ReplicaFailure", "Replica Failure condition. Check Pods");
  }
  const desired = integerField(object, "spec.replicas", 1);
  const replicas = integerField(object, "status.replicas", 0);
  const ready = integerField(object, "status.readyReplicas", 0);
  const available = integerField(object, "status.availableReplicas", 0);
  const labelled = integerField(object, "status.fullyLabeledReplicas", 0);
  if (desired > labelled) return inProgress("LessLabelled", `Labelled: ${labelled}/${desired}`);
  if (desired > available) return inProgress("LessAvailable", `Available: ${available}/${desired}`);
  if (desired > ready) return inProgress("LessReady", `Ready: ${ready}/${desired}`);
  if (replicas > desired) return inProgress("ExtraPods", `Pending termination: ${replicas - desired}`);
  return current(`ReplicaSet is available. Replicas: ${replicas}`);
}

export function daemonSetHealth(object: KubeObject): Health {
  if (valueAt(object, "metadata", "generation") === undefined) {
    return inProgress("NoGeneration", "DaemonSet metadata.generation not found");
  }
  if (valueAt(object, "status", "observedGeneration") === undefined) {
    return inProgress("NoObservedGeneration", "DaemonSet status.observedGeneration not found");
  }
  const desired = integerField(object, "status.desiredNumberScheduled", -1);
  const scheduled = integerField(object, "status.currentNumberScheduled", 0);
  const updated = integerField(object, "status.updatedNumberScheduled", 0);
  const available = integerField(object, "status.numberAvailable", 0);
  const ready = integerField(object, "status.numberReady", 0);
  if (desired === -1) return inProgress("NoDesiredNumber", "Missing .status.desiredNumberScheduled");
  if (desired > scheduled) return inProgress("LessCurrent", `Current: ${scheduled}/${desired}`);
  if (desired > updated) return inProgress("LessUpdated", `Updated: ${updated}/${desired}`);
  if (desired > available) return inProgress("LessAvailable", `Available: ${available}/${desired}`);
  if (desired > ready) return inProgress("LessReady", `Ready: ${ready}/${desired}`);
  return current(`All replicas scheduled as expected. Replicas: ${desired}`);
}

/**
 * Follows Flux's table, in which a Job is done when it is complete. In kstatus' own table, a started Job is Current.
 * The generic rules come first, so that a Job being deleted is Terminating.
 */
export function jobHealth(object: KubeObject): Health {
  const parallelism = integerField(object, "spec.parallelism", 1);
  const completions = integerField(object, "spec.completions", parallelism);
  const succeeded = integerField(object, "status.succeeded", 0);
  const active = integerField(object, "status.active", 0);
  const failures = integerField(object, "status.failed", 0);
  if (valueAt(object, "spec", "suspend") === true) return current("Job is suspended");
  const conditions = conditionsOf(object);
  if (isCompleteJob(object)) {
    return current(`Job Completed. succeeded: ${succeeded}/${completions}`);
  }
  if (conditions.some(({ type, status }) => type === "Failed" && status === "True")) {
    return failed(jobFailed, `Job Failed. failed: ${failures}/${completions}`);
  }
  if (stringField(object, "status.startTime", "") === "") {
    return inProgress("JobNotStarted", `Job not started. active: 0/${parallelism}`);
  }
  return inProgress("JobInProgress", `Job in progress. success:${succeeded}, active: ${active}, failed: ${failures}`);
}

/** Whether a Job has succeeded. */
export function isCompleteJob(object: KubeObject): boolean {
  return conditionsOf(object).some(({ type, status }) => type === "Complete" && status === "True");
}
