import { type Change, keyOf } from "#apiserver/cluster-store.ts";
import { type ControllerContext, controllerOf } from "#apiserver/controllers/controller-context.ts";
import { uidOf } from "#apiserver/controllers/owner-index.ts";
import type { Json, JsonObject } from "#apiserver/json.ts";
import { listAt, stringAt, valueAt } from "#apiserver/object-fields.ts";

export const podResource = "/pods";

/**
 * Runs Pods in place of a kubelet. A Pod becomes ready after a delay. A Pod of a Job succeeds after the delay. A Pod
 * whose image cannot be pulled never becomes ready.
 */
export function runPods(context: ControllerContext): (change: Change) => void {
  return ({ resource, type, object, previous }) => {
    if (resource !== podResource || type === "DELETED") return;
    const { cluster, scheduler, readyAfterMs } = context;
    const images = imagesOf(object);
    const now = cluster.options.clock();
    const key = keyOf(object);
    const uid = uidOf(object);
    function later(step: string, atMs: number, status: (pod: JsonObject) => JsonObject): void {
      scheduler.at(`pod/${uid}/${step}`, atMs, () => {
        const pod = cluster.store.get(podResource, key);
        if (pod !== undefined && uidOf(pod) === uid)
          context.writeStatus(podResource, pod, { status: status(pod), manager: "kubelet" });
      });
    }
    if (previous !== undefined && images.join() === imagesOf(previous).join()) return;
    const bad = images.find(context.imagePullFails);
    if (bad !== undefined) {
      later("start", now, (pod) => waitingStatus(context, pod, { reason: "ErrImagePull", image: bad }));
      later("backoff", now + readyAfterMs, (pod) =>
        waitingStatus(context, pod, { reason: "ImagePullBackOff", image: bad }),
      );
      return;
    }
    later("ready", now + readyAfterMs, (pod) => (isJobPod(pod) ? doneStatus(context, pod) : readyStatus(context, pod)));
  };
}

function containersOf(pod: JsonObject): readonly Json[] {
  return listAt(pod, "spec", "containers");
}

function imagesOf(pod: JsonObject): string[] {
  return [...listAt(pod, "spec", "initContainers"), ...containersOf(pod)].map((each) => stringAt(each, "image") ?? "");
}

function isJobPod(pod: JsonObject): boolean {
  return controllerOf(pod)?.kind === "Job";
}

interface Conditions {
  readonly ready: "True" | "False";
  readonly reason?: string;
  readonly message?: string;
}

function conditions(context: ControllerContext, { ready, reason, message }: Conditions): JsonObject[] {
  const lastTransitionTime = context.cluster.now();
  const why = { ...(reason === undefined ? {} : { reason }), ...(message === undefined ? {} : { message }) };
  return [
    { type: "PodReadyToStartContainers", status: "True", lastTransitionTime },
    { type: "Initialized", status: "True", lastTransitionTime },
    { type: "Ready", status: ready, lastTransitionTime, ...why },
    { type: "ContainersReady", status: ready, lastTransitionTime, ...why },
    { type: "PodScheduled", status: "True", lastTransitionTime },
  ];
}

function containerStatus(container: Json, state: JsonObject): JsonObject {
  const ready = state.running !== undefined;
  const image = stringAt(container, "image") ?? "";
  return {
    name: stringAt(container, "name") ?? "",
    state,
    ready,
    restartCount: 0,
    image,
    imageID: ready ? `docker.io/library/${image}` : "",
    started: ready,
  };
}

function baseStatus(context: ControllerContext, pod: JsonObject): JsonObject {
  return {
    qosClass: stringAt(pod, "status", "qosClass") ?? "BestEffort",
    startTime: valueAt(pod, "status", "startTime") ?? context.cluster.now(),
    hostIP: "192.0.2.1",
    hostIPs: [{ ip: "192.0.2.1" }],
  };
}

function podIp(pod: JsonObject): string {
  const digest = Number.parseInt(uidOf(pod).slice(0, 6), 16);
  return `10.244.${(digest >> 8) & 255}.${(digest & 127) + 2}`;
}

function readyStatus(context: ControllerContext, pod: JsonObject): JsonObject {
  const ip = podIp(pod);
  const running = { running: { startedAt: context.cluster.now() } };
  return {
    ...baseStatus(context, pod),
    phase: "Running",
    conditions: conditions(context, { ready: "True" }),
    podIP: ip,
    podIPs: [{ ip }],
    containerStatuses: containersOf(pod).map((container) => containerStatus(container, running)),
  };
}

function doneStatus(context: ControllerContext, pod: JsonObject): JsonObject {
  const now = context.cluster.now();
  const terminated = { terminated: { exitCode: 0, reason: "Completed", startedAt: now, finishedAt: now } };
  return {
    ...baseStatus(context, pod),
    phase: "Succeeded",
    conditions: conditions(context, { ready: "False", reason: "PodCompleted" }),
    containerStatuses: containersOf(pod).map((container) => containerStatus(container, terminated)),
  };
}

function waitingStatus(
  context: ControllerContext,
  pod: JsonObject,
  why: { readonly reason: string; readonly image: string },
): JsonObject {
  const names = containersOf(pod).map((container) => stringAt(container, "name") ?? "");
  const message =
    why.reason === "ErrImagePull"
      ? `failed to pull and unpack image ${JSON.stringify(why.image)}: not found`
      : `Back-off pulling image ${JSON.stringify(why.image)}: ErrImagePull: failed to pull and unpack image ${JSON.stringify(why.image)}: not found`;
  const waiting = { waiting: { reason: why.reason, message } };
  return {
    ...baseStatus(context, pod),
    phase: "Pending",
    conditions: conditions(context, {
      ready: "False",
      reason: "ContainersNotReady",
      message: `containers with unready status: [${names.join(" ")}]`,
    }),
    containerStatuses: containersOf(pod).map((container) => containerStatus(container, waiting)),
  };
}

/** The time in milliseconds since which a Pod is ready. Undefined while the Pod is not ready or is being deleted. */
export function readySince(pod: JsonObject): number | undefined {
  if (valueAt(pod, "metadata", "deletionTimestamp") !== undefined) return undefined;
  for (const condition of listAt(pod, "status", "conditions")) {
    if (stringAt(condition, "type") !== "Ready" || stringAt(condition, "status") !== "True") continue;
    return Date.parse(stringAt(condition, "lastTransitionTime") ?? "");
  }
  return undefined;
}
