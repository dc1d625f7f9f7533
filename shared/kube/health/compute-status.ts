import type { Json } from "#shared/base/json.ts";
import { podHealth } from "#shared/kube/health/pod-rule.ts";
import {
  conditionsOf,
  current,
  failed,
  type Health,
  HealthShapeError,
  inProgress,
  stringField,
  unknown,
} from "#shared/kube/health/status.ts";
import {
  daemonSetHealth,
  deploymentHealth,
  jobHealth,
  replicaSetHealth,
  statefulSetHealth,
} from "#shared/kube/health/workload-rules.ts";
import { type KubeObject, stringAt, valueAt } from "#shared/kube/kube-object.ts";
import { groupOf } from "#shared/kube/object-id.ts";

export interface HealthOptions {
  readonly now: Date;
  /**
   * The generation that the server returned for the last apply. An older generation says nothing about the applied
   * object. kstatus alone calls an object Current even if its controller has not seen it yet
   * (kustomize-controller#387).
   */
  readonly minimumGeneration?: number;
  /** Default: kstatus' 15 s. Starting a node for a Pod takes minutes, so the engine sets a longer time. */
  readonly unschedulableGraceSeconds?: number;
  /**
   * Set for a custom resource whose definition has a status subresource. Without a status it is InProgress for
   * `statusGraceSeconds` after its creation, because its controller may not have seen it yet (cluster-api#9299).
   */
  readonly expectsStatus?: boolean;
}

const statusGraceSeconds = 15;
const defaultUnschedulableGraceSeconds = 15;

/**
 * The health of one live object by the rules of kstatus, in this order: a deletion in progress, the observed
 * generation, the conditions Reconciling and Stalled, the rule of its kind in any version, and the condition Ready.
 * Otherwise it is Current. An object with a shape that the rules cannot read is `Unknown` with the reason `Unreadable`.
 */
export function computeStatus(object: KubeObject, options: HealthOptions): Health {
  try {
    return genericHealth(object, options) ?? kindHealth(object, options) ?? readyHealth(object, options);
  } catch (error) {
    if (error instanceof HealthShapeError) return unknown("Unreadable", error.message);
    throw error;
  }
}

function genericHealth(object: KubeObject, options: HealthOptions): Health | undefined {
  const deletedAt = valueAt(object, "metadata", "deletionTimestamp");
  if (deletedAt !== undefined && deletedAt !== null && typeof deletedAt !== "string") {
    throw new HealthShapeError("metadata.deletionTimestamp must be a string");
  }
  if (deletedAt) return { status: "Terminating", message: "Resource scheduled for deletion" };
  const behind = generationHealth(object, options);
  if (behind) return behind;
  for (const { type, status, reason, message } of conditionsOf(object)) {
    if (type === "Reconciling" && status === "True") return inProgress(reason, message);
    if (type === "Stalled" && status === "True") return failed(reason, message);
  }
  return undefined;
}

function generationHealth(object: KubeObject, { minimumGeneration = 0 }: HealthOptions): Health | undefined {
  const kind = stringField(object, "kind", "Object");
  const generation = generationNumber(valueAt(object, "metadata", "generation"), "metadata.generation");
  const observed = generationNumber(valueAt(object, "status", "observedGeneration"), "status.observedGeneration");
  if (generation !== undefined && observed !== undefined && generation !== observed) {
    const message = `${kind} generation is ${generation}, but latest observed generation is ${observed}`;
    return inProgress("LatestGenerationNotObserved", message);
  }
  if (generation !== undefined && generation < minimumGeneration) {
    const message = `${kind} generation is ${generation}, but ${minimumGeneration} was applied`;
    return inProgress("LatestGenerationNotObserved", message);
  }
  return undefined;
}

function generationNumber(value: Json | undefined, path: string): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "bigint") return Number(value);
  if (typeof value === "number" && Number.isInteger(value)) return value;
  throw new HealthShapeError(`looking up ${path} from resource: expected an integer`);
}

type KindRule = (object: KubeObject, options: HealthOptions) => Health;

const alwaysReady: KindRule = () => current("Resource is always ready");

/** By group and kind; the version does not matter. */
const kindRules: Readonly<Record<string, KindRule>> = {
  "/ConfigMap": alwaysReady,
  "/Secret": alwaysReady,
  "batch/CronJob": alwaysReady,
  "policy/PodDisruptionBudget": () => current("AllowedDisruptions has been computed."),
  "/Service": serviceHealth,
  "/PersistentVolumeClaim": claimHealth,
  "/Pod": (object, { now, unschedulableGraceSeconds = defaultUnschedulableGraceSeconds }) =>
    podHealth(object, { now, unschedulableGraceSeconds }),
  "apps/Deployment": deploymentHealth,
  "extensions/Deployment": deploymentHealth,
  "apps/ReplicaSet": replicaSetHealth,
  "extensions/ReplicaSet": replicaSetHealth,
  "apps/DaemonSet": daemonSetHealth,
  "extensions/DaemonSet": daemonSetHealth,
  "apps/StatefulSet": statefulSetHealth,
  "batch/Job": jobHealth,
  "apiextensions.k8s.io/CustomResourceDefinition": definitionHealth,
};

function kindHealth(object: KubeObject, options: HealthOptions): Health | undefined {
  const group = groupOf(stringAt(object, "apiVersion") ?? "");
  return kindRules[`${group}/${stringAt(object, "kind")}`]?.(object, options);
}

function serviceHealth(object: KubeObject): Health {
  const type = stringField(object, "spec.type", "ClusterIP");
  if (type === "LoadBalancer" && stringField(object, "spec.clusterIP", "") === "") {
    return inProgress("NoIPAssigned", "ClusterIP not set. Service type: LoadBalancer");
  }
  return current("Service is ready");
}

function claimHealth(object: KubeObject): Health {
  const phase = stringField(object, "status.phase", "unknown");
  return phase === "Bound" ? current("PVC is Bound") : inProgress("NotBound", `PVC is not Bound. phase: ${phase}`);
}

function definitionHealth(object: KubeObject): Health {
  for (const { type, status, reason, message } of conditionsOf(object)) {
    if (type === "NamesAccepted" && status === "False") return failed(reason, message);
    if (type === "Established" && status === "False" && reason !== "Installing") return failed(reason, message);
    if (type === "Established" && status === "True") return current("CRD is established");
  }
  return inProgress("Installing", "Install in progress");
}

function readyHealth(object: KubeObject, options: HealthOptions): Health {
  for (const { type, status, reason, message, observedGeneration } of conditionsOf(object)) {
    if (type !== "Ready") continue;
    if (observedGeneration !== undefined && observedGeneration < (options.minimumGeneration ?? 0)) {
      const text = `Ready is about generation ${observedGeneration}, but ${options.minimumGeneration} was applied`;
      return inProgress("LatestGenerationNotObserved", text);
    }
    if (status === "True") return current("Resource is Ready");
    if (status === "False" || status === "Unknown") return inProgress(reason, message);
  }
  if (options.expectsStatus && valueAt(object, "status") === undefined) {
    const createdAt = Date.parse(stringField(object, "metadata.creationTimestamp", ""));
    if (options.now.getTime() - statusGraceSeconds * 1000 < createdAt) {
      return inProgress("NoStatus", "No controller has reported a status yet");
    }
  }
  return current("Resource is current");
}
