import type { ControllerContext } from "#apiserver/controllers/controller-context.ts";
import { podResource, readySince } from "#apiserver/controllers/pod-controller.ts";
import {
  countPods,
  createPod,
  isDeleting,
  numberAt,
  podsOf,
  specOf,
  templateHash,
  templateOf,
} from "#apiserver/controllers/workload.ts";
import type { JsonObject } from "#apiserver/json.ts";
import { labelsOf } from "#apiserver/object-fields.ts";

export const daemonSetResource = "apps/daemonsets";
const revisionLabel = "controller-revision-hash";
/** An embedded cluster has one imaginary node. */
const nodes = 1;

/** Keeps one Pod on the node and replaces it when the template changes. */
export function reconcileDaemonSet(context: ControllerContext, set: JsonObject): void {
  if (isDeleting(set)) return;
  const revision = templateHash(specOf(set).template);
  for (const pod of podsOf(context, set)) {
    const outdated = labelsOf(pod)[revisionLabel] !== revision;
    if (outdated) context.remove(podResource, pod);
  }
  if (podsOf(context, set).length < nodes) {
    createPod(context, set, {
      template: templateOf(set),
      labels: { [revisionLabel]: revision, "pod-template-generation": String(numberAt(set, "metadata", "generation")) },
    });
  }
  const pods = podsOf(context, set);
  const counts = countPods(pods, {
    minReadySeconds: numberAt(set, "spec", "minReadySeconds"),
    nowMs: context.cluster.options.clock(),
  });
  const ready = pods.filter((pod) => readySince(pod) !== undefined).length;
  context.writeStatus(daemonSetResource, set, {
    status: {
      currentNumberScheduled: counts.total,
      numberMisscheduled: 0,
      desiredNumberScheduled: nodes,
      numberReady: ready,
      observedGeneration: numberAt(set, "metadata", "generation"),
      updatedNumberScheduled: counts.total,
      numberAvailable: counts.available,
      numberUnavailable: nodes - counts.available,
    },
  });
}
