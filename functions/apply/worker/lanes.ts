/** The two queues in front of the workers: which of them a cluster's next message goes to, and what a worker may take there. */

import type { ClusterConnector } from "#functions/apply/cluster/worker-ports.ts";
import { isSlow, type PlaceUse } from "#shared/fleet/rows/place-use.ts";
import type { Message } from "#shared/messages.ts";

/** `common`: all clusters share its places, and a slow one leaves them to others. `slow`: it has the time that it needs. */
export type Lane = "common" | "slow";

/** An honest server answers in a tenth of that, and its lists in half. */
const answerWithinMs = 2_000;

/** Clients of the common lane: what takes long to answer is left to a worker of the slow one. */
export function hurried(connector: ClusterConnector): ClusterConnector {
  return {
    connect: (cluster, deadline) => connector.connect(cluster, deadline, { answerWithinMs }),
    distrust: (cluster) => connector.distrust(cluster),
  };
}

/** In which of them the cluster is worked on next. */
export function laneOf(use: PlaceUse | undefined, now: Date): Lane {
  return isSlow(use, now) ? "slow" : "common";
}

/** What a worker sends about its own cluster goes to its lane at once; everybody else sends to the common one. */
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
