import { keyOf } from "#apiserver/cluster-store.ts";
import type { ControllerContext } from "#apiserver/controllers/controller-context.ts";
import { podResource, readySince } from "#apiserver/controllers/pod-controller.ts";
import {
  countPods,
  createPod,
  enqueue,
  isDeleting,
  numberAt,
  podsOf,
  replicasOf,
  statusOf,
  templateOf,
} from "#apiserver/controllers/workload.ts";
import type { JsonObject } from "#apiserver/json.ts";

export const replicaSetResource = "apps/replicasets";

/** Creates and deletes Pods until their number is the ReplicaSet's `replicas`. */
export function reconcileReplicaSet(context: ControllerContext, replicaSet: JsonObject): void {
  const pods = podsOf(context, replicaSet);
  if (!isDeleting(replicaSet)) scalePods(context, replicaSet, pods);
  const left = podsOf(context, replicaSet);
  const nowMs = context.cluster.options.clock();
  const counts = countPods(left, { minReadySeconds: numberAt(replicaSet, "spec", "minReadySeconds"), nowMs });
  context.writeStatus(replicaSetResource, replicaSet, {
    status: {
      ...statusOf(replicaSet),
      replicas: counts.total,
      fullyLabeledReplicas: counts.total,
      readyReplicas: counts.ready,
      availableReplicas: counts.available,
      terminatingReplicas: 0,
      observedGeneration: numberAt(replicaSet, "metadata", "generation"),
    },
  });
  if (counts.nextAvailableAt === undefined) return;
  const at = { resource: replicaSetResource, key: keyOf(replicaSet), atMs: counts.nextAvailableAt };
  enqueue(context, at, (object) => reconcileReplicaSet(context, object));
}

function scalePods(context: ControllerContext, replicaSet: JsonObject, pods: readonly JsonObject[]): void {
  const desired = replicasOf(replicaSet);
  for (let count = pods.length; count < desired; count += 1) {
    createPod(context, replicaSet, { template: templateOf(replicaSet), labels: {} });
  }
  const surplus = [...pods].sort((a, b) => Number(readySince(a) !== undefined) - Number(readySince(b) !== undefined));
  for (const pod of surplus.slice(0, Math.max(0, pods.length - desired))) context.remove(podResource, pod);
}
