import type { RequestRecord } from "@starling/embedded-apiserver";
import type { AwsCall } from "#local/aws/wire/aws-call.ts";
import type { HttpReply } from "#local/aws/wire/emulator-client.ts";
import { isOfType } from "#shared/fleet/rows/stored-row.ts";
import { isAway, isOutstanding, type SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { handUserAgent } from "#test/support/kube-call.ts";
import { rowsPut } from "#test/support/put-rows.ts";

export interface ChangeMonitor {
  /** To be told every finished request at the API servers. */
  onRequest(record: RequestRecord): void;
  /** To be told every call that the emulators answered. */
  onCall(call: AwsCall, reply: HttpReply): void;
  /** Clusters that are changing now. */
  changing(): readonly string[];
  /** The most clusters that were changing at one time, and which. */
  most(): readonly string[];
  /** Writes of Starling to clusters for which nothing was outstanding. */
  unasked(): readonly RequestRecord[];
  reset(): void;
}

/** In the order of what was seen. */
interface Change {
  readonly cluster: string;
  readonly from: number;
  to: number;
}

/**
 * Counts the clusters that are changing where it matters: from the first write that an API server took after an
 * assignment, until every Sync of the cluster is settled in the table. One that is parked meanwhile was changing until
 * the last write that came all the same, whatever the planner had given its slot to before that.
 */
export function watchChanges(): ChangeMonitor {
  const syncs = new Map<string, Map<string, SyncRow>>();
  const changing = new Map<string, Change>();
  const paused = new Map<string, Change>();
  let changes: Change[] = [];
  let unasked: RequestRecord[] = [];
  let seen = 0;

  function every(cluster: string, holds: (row: SyncRow) => boolean): boolean {
    return [...(syncs.get(cluster)?.values() ?? [])].every(holds);
  }

  function onWrite(record: RequestRecord): void {
    const { cluster } = record;
    const isLate = every(cluster, isLeftAlone);
    const change = isLate ? paused.get(cluster) : changing.get(cluster);
    if (isLate && change === undefined) unasked.push(record);
    if (isLate && change !== undefined) change.to = seen;
    if (isLate || change !== undefined) return;
    const begun = { cluster, from: seen, to: Number.POSITIVE_INFINITY };
    changes.push(begun);
    changing.set(cluster, begun);
  }

  function onRow(row: SyncRow): void {
    const { cluster } = row;
    const ofCluster = syncs.get(cluster) ?? new Map<string, SyncRow>();
    // A write whose answer was lost is sent again, and answered as if it were done only now.
    if (row.version < (ofCluster.get(row.name)?.version ?? 0)) return;
    ofCluster.set(row.name, row);
    syncs.set(cluster, ofCluster);
    if (!every(cluster, isLeftAlone)) {
      paused.delete(cluster);
      return;
    }
    const change = changing.get(cluster);
    if (change === undefined) return;
    change.to = seen;
    changing.delete(cluster);
    if (!every(cluster, ({ paused }) => paused === undefined)) paused.set(cluster, change);
  }

  return {
    onRequest(record) {
      if (record.method === "GET" || record.userAgent === handUserAgent || record.dryRun) return;
      if (record.result < 200 || record.result >= 300) return;
      seen += 1;
      onWrite(record);
    },
    onCall(call, reply) {
      if (call.service !== "dynamodb" || reply.status !== 200) return;
      seen += 1;
      for (const row of rowsPut(call.request)) if (isOfType(row, "SyncOnCluster")) onRow(row);
    },
    changing: () => [...changing.keys()].sort(),
    most: () => mostAtOnce(changes),
    unasked: () => unasked,
    reset() {
      changes = [...changing.values()];
      unasked = [];
    },
  };
}

/** There are the most when one of them begins. */
function mostAtOnce(changes: readonly Change[]): readonly string[] {
  let most: readonly string[] = [];
  for (const { from } of changes) {
    const then = changes.filter((other) => other.from <= from && from < other.to);
    const clusters = new Set(then.map(({ cluster }) => cluster));
    if (clusters.size > most.length) most = [...clusters].sort();
  }
  return most;
}

/** A cluster that answers again, or is parked, is left alone until its turn comes, in which it gets another attempt. */
function isLeftAlone(row: SyncRow): boolean {
  return !isOutstanding(row) || isAway(row) || row.paused !== undefined;
}
