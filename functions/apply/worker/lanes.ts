/** The two queues in front of the workers: the queue for a cluster's next message, and the limits of a worker there. */

import type { ClusterConnector } from "#functions/apply/cluster/worker-ports.ts";
import { isSlow, type PlaceUse } from "#shared/fleet/rows/place-use.ts";
import type { Message } from "#shared/messages.ts";

/**
 * In the `common` lane all clusters share the places, and a slow cluster has to leave. In the `slow` lane a cluster has
 * the time that it needs.
 */
export type Lane = "common" | "slow";

/** A healthy server answers in a tenth of this time, and its lists in half. */
const answerWithinMs = 2_000;

/** Clients of the common lane: a cluster that answers slowly is left to a worker of the slow lane. */
export function hurried(connector: ClusterConnector): ClusterConnector {
  return {
    connect: (cluster, deadline) => connector.connect(cluster, deadline, { answerWithinMs }),
    distrust: (cluster) => connector.distrust(cluster),
  };
}

/** The lane for the cluster's next work. */
export function laneOf(use: PlaceUse | undefined, now: Date): Lane {
  return isSlow(use, now) ? "slow" : "common";
}

/**
 * A worker sends messages about its own cluster directly to the cluster's lane; all other functions send to the common
 * one.
 */
export function inLane(
  messages: readonly Message[],
  { cluster, lane }: { readonly cluster: string; readonly lane: Lane },
) {
  if (lane === "common") return messages;
  return messages.map((message): Message => {
    if (message.to !== "apply" || message.cluster !== cluster) return message;
    return { ...message, to: "applySlow" };
  });
}
