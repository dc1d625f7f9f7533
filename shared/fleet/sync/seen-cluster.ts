/** The status half of a Cluster: facts that its worker learned while it worked on Syncs. */

import { defined } from "#shared/base/defined.ts";
import { foreignText } from "#shared/base/foreign-text.ts";
import type { ClusterRow, Condition, EksAddress } from "#shared/fleet/rows/object-rows.ts";
import type { Finding } from "#shared/fleet/sync/observe.ts";
import { type AnyReason, reportedReason } from "#shared/kube/reasons.ts";

/** Seconds between two records that a cluster answers. */
const seenSeconds = 300;
/** The same when everything was read and is healthy: the cluster's routine has the time. */
const seenWellSeconds = 21_600;
/** Length limit for texts of a cluster. */
const maxVersion = 100;
const maxUid = 200;
const maxReason = 100;
const maxMessage = 1_000;

/** The cluster answered; the facts that it was asked for are present. */
export interface ClusterContact {
  readonly uid?: string | undefined;
  readonly version?: string | undefined;
  /** The address that EKS reports; present when the row has none yet. */
  readonly address?: EksAddress | undefined;
}

export interface Sighting {
  readonly result: Finding & { readonly otherUid?: string };
  /** Absent when the cluster was not reached, or not asked. */
  readonly contact?: ClusterContact;
  readonly now: Date;
}

/** Whether to ask the cluster for its version: when something is unhealthy, the answer shows whether it answers at all. */
export function isSeenLongAgo(cluster: ClusterRow, { result, now }: Pick<Sighting, "result" | "now">): boolean {
  const last = cluster.status.lastSeenAt;
  const seconds = result.phase === "Ready" ? seenWellSeconds : seenSeconds;
  return last === undefined || Date.parse(last) + seconds * 1000 < now.getTime();
}

/** The row with its new facts, or undefined without any: a failure on Starling's side tells nothing about the cluster. */
export function seenCluster(cluster: ClusterRow, sighting: Sighting): ClusterRow | undefined {
  const { result, contact } = sighting;
  const away = result.phase === "Unreachable";
  if (!away && contact === undefined) return undefined;
  const now = sighting.now.toISOString();
  const before = cluster.status.conditions.find((condition) => condition.type === "Reachable");
  // An answer alone does not prove that the expected cluster answers again.
  if (!away && before?.reason === "IdentityMismatch" && contact?.uid === undefined) return undefined;
  const status = away ? "False" : "True";
  const reason: AnyReason = away ? reportedReason(foreignText(result.reason, maxReason)) : "Answers";
  const uid = bounded(contact?.uid, maxUid) ?? cluster.status.uid;
  const { mismatch: otherBefore, ...known } = cluster.status;
  const mismatch = away && reason === "IdentityMismatch" ? bounded(result.otherUid, maxUid) : undefined;
  const message = away ? foreignText(result.message, maxMessage) : "";
  const same =
    before?.status === status &&
    before.reason === reason &&
    before.message === message &&
    uid === cluster.status.uid &&
    mismatch === otherBefore;
  const address = contact?.address ?? cluster.status.address;
  const isKnown = address?.askedAt === cluster.status.address?.askedAt;
  if (same && isKnown && (away || !isSeenLongAgo(cluster, sighting))) return undefined;
  const condition: Condition = {
    type: "Reachable",
    status,
    reason,
    message,
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
