import type { ControllerContext } from "#apiserver/controllers/controller-context.ts";
import { podResource, readySince } from "#apiserver/controllers/pod-controller.ts";
import { isDeleting, numberAt, statusOf } from "#apiserver/controllers/workload.ts";
import { isJsonObject, type JsonObject } from "#apiserver/json.ts";
import { listAt, stringAt, valueAt } from "#apiserver/object-fields.ts";
import { nameOf, withMetadata } from "#apiserver/operations/object-meta.ts";
import { matchesLabels } from "#apiserver/operations/table.ts";

export const claimResource = "/persistentvolumeclaims";
export const volumeResource = "/persistentvolumes";
export const budgetResource = "policy/poddisruptionbudgets";

/** Binds a claim to an imaginary volume. */
export function bindClaim(context: ControllerContext, claim: JsonObject): void {
  if (isDeleting(claim) || stringAt(claim, "status", "phase") === "Bound") return;
  const capacity = valueAt(claim, "spec", "resources", "requests");
  context.writeStatus(claimResource, claim, {
    status: {
      phase: "Bound",
      accessModes: listAt(claim, "spec", "accessModes"),
      ...(isJsonObject(capacity) ? { capacity } : {}),
    },
  });
}

const protections = ["kubernetes.io/pvc-protection", "kubernetes.io/pv-protection"];

/** Removes storage that is being deleted once no Pod uses it. */
export function releaseStorage(context: ControllerContext, object: JsonObject): void {
  if (!isDeleting(object)) return;
  const namespace = stringAt(object, "metadata", "namespace");
  const name = nameOf(object);
  const used =
    namespace !== undefined &&
    context.cluster.store.list(podResource, namespace).some((pod) => claims(pod).includes(name));
  const left = listAt(object, "metadata", "finalizers").filter((each) => !protections.includes(String(each)));
  if (used || left.length === listAt(object, "metadata", "finalizers").length) return;
  const resource = namespace === undefined ? volumeResource : claimResource;
  context.write(resource, withMetadata(object, { finalizers: left.length === 0 ? undefined : left }));
}

/** The claims that a Pod mounts. */
export function claims(pod: JsonObject): string[] {
  return listAt(pod, "spec", "volumes").map((volume) => stringAt(volume, "persistentVolumeClaim", "claimName") ?? "");
}

/** Counts the Pods that a PodDisruptionBudget protects. */
export function countBudget(context: ControllerContext, budget: JsonObject): void {
  const namespace = stringAt(budget, "metadata", "namespace") ?? "";
  const desired = valueAt(budget, "spec", "selector", "matchLabels");
  const pods = context.cluster.store
    .list(podResource, namespace)
    .filter((pod) => matchesLabels(pod, desired) && !isDeleting(pod));
  const expectedPods = pods.length;
  const currentHealthy = pods.filter((pod) => readySince(pod) !== undefined).length;
  const minAvailable = share(valueAt(budget, "spec", "minAvailable"), expectedPods);
  const maxUnavailable = share(valueAt(budget, "spec", "maxUnavailable"), expectedPods);
  const desiredHealthy = minAvailable ?? Math.max(0, expectedPods - (maxUnavailable ?? 1));
  const disruptionsAllowed = Math.max(0, currentHealthy - desiredHealthy);
  const observedGeneration = numberAt(budget, "metadata", "generation");
  const enough = disruptionsAllowed > 0;
  const before = listAt(statusOf(budget), "conditions").find(
    (each) => stringAt(each, "status") === (enough ? "True" : "False"),
  );
  const condition = {
    type: "DisruptionAllowed",
    status: enough ? "True" : "False",
    observedGeneration,
    lastTransitionTime: stringAt(before, "lastTransitionTime") ?? context.cluster.now(),
    reason: enough ? "SufficientPods" : "InsufficientPods",
    message: "",
  };
  context.writeStatus(budgetResource, budget, {
    status: {
      observedGeneration,
      disruptionsAllowed,
      currentHealthy,
      desiredHealthy,
      expectedPods,
      conditions: [condition],
    },
  });
}

function share(value: unknown, of: number): number | undefined {
  if (typeof value === "number") return value;
  return typeof value === "string" ? Math.ceil((Number.parseInt(value, 10) / 100) * of) : undefined;
}
