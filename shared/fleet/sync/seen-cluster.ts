/** The status half of a Cluster: what its worker learned of it while it worked on something else. */

import { defined } from "#shared/base/defined.ts";
import { foreignText } from "#shared/base/foreign-text.ts";
import type { ClusterRow, Condition, EksAddress } from "#shared/fleet/rows/object-rows.ts";
import type { Finding } from "#shared/fleet/sync/observe.ts";
import { type AnyReason, reportedReason } from "#shared/kube/reasons.ts";

/** A cluster that answers is noted at most this often. */
const seenSeconds = 300;
/** The same where everything was read and is well: when that was stands with the cluster's routine. */
const seenWellSeconds = 21_600;
/** Of what a cluster says of itself. */
const maxVersion = 100;
const maxUid = 200;
const maxReason = 100;
const maxMessage = 1_000;

/** The cluster answered; what it was asked on the way is there. */
export interface ClusterContact {
  readonly uid?: string | undefined;
  readonly version?: string | undefined;
  /** Where EKS says that it is; given when the row does not say so yet. */
  readonly address?: EksAddress | undefined;
}

export interface Sighting {
  readonly result: Finding & { readonly otherUid?: string };
  /** Absent when the cluster was not reached, or not even asked. */
  readonly contact?: ClusterContact;
  readonly now: Date;
}

/** Whether it is to be asked for its version: where not all is well, whether it answers at all shows by that. */
export function isSeenLongAgo(cluster: ClusterRow, { result, now }: Pick<Sighting, "result" | "now">): boolean {
  const last = cluster.status.lastSeenAt;
  const seconds = result.phase === "Ready" ? seenWellSeconds : seenSeconds;
  return last === undefined || Date.parse(last) + seconds * 1000 < now.getTime();
}

/** The row with what is new in it, or undefined when nothing is: a failure on our side says nothing of the cluster. */
export function seenCluster(cluster: ClusterRow, sighting: Sighting): ClusterRow | undefined {
  const { result, contact } = sighting;
  const away = result.phase === "Unreachable";
  if (!away && contact === undefined) return undefined;
  const now = sighting.now.toISOString();
  const before = cluster.status.conditions.find((condition) => condition.type === "Reachable");
  // An answer from whoever it is does not show that it is the right one again.
  if (!away && before?.reason === "IdentityMismatch" && contact?.uid === undefined) return undefined;
  const status = away ? "False" : "True";
  const reason: AnyReason = away ? reportedReason(foreignText(result.reason, maxReason)) : "Answers";
  const uid = bounded(contact?.uid, maxUid) ?? cluster.status.uid;
  const { mismatch: otherBefore, ...known } = cluster.status;
  const mismatch = away && reason === "IdentityMismatch" ? bounded(result.otherUid, maxUid) : undefined;
  const same =
    before?.status === status && before.reason === reason && uid === cluster.status.uid && mismatch === otherBefore;
  const address = contact?.address ?? cluster.status.address;
  const isKnown = address?.askedAt === cluster.status.address?.askedAt;
  if (same && isKnown && (away || !isSeenLongAgo(cluster, sighting))) return undefined;
  const condition: Condition = {
    type: "Reachable",
    status,
    reason,
    message: away ? foreignText(result.message, maxMessage) : "",
    since: before?.status === status ? before.since : now,
  };
  const version = bounded(contact?.version, maxVersion) ?? cluster.status.version;
  return {
    ...cluster,
    version: cluster.version + 1,
    status: {
      ...known,
      ...defined({ mismatch, uid, version, address }),
      ...(away ? {} : { lastSeenAt: now }),
      conditions: [condition],
    },
  };
}

function bounded(text: string | undefined, maxLength: number): string | undefined {
  return text === undefined ? undefined : foreignText(text, maxLength);
}
