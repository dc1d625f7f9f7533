import type { RequestRecord } from "@starling/embedded-apiserver";
import type { AwsCall } from "#local/aws/wire/aws-call.ts";
import type { HttpReply } from "#local/aws/wire/emulator-client.ts";
import { isOfType } from "#shared/fleet/rows/stored-row.ts";
import { isAway, isOutstanding, type SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { handUserAgent } from "#test/support/kube-call.ts";
import { writtenRows } from "#test/support/written-rows.ts";

export interface ChangeMonitor {
  /** Must be called with every finished request to the API servers. */
  onRequest(record: RequestRecord): void;
  /** Must be called with every call that the emulators answered. */
  onCall(call: AwsCall, reply: HttpReply): void;
  /** The clusters that are changing now. */
  changing(): readonly string[];
  /** The largest set of clusters that were changing at the same time. */
  most(): readonly string[];
  /** Writes of Starling to clusters without an open assignment. */
  unasked(): readonly RequestRecord[];
  reset(): void;
}

/** In the order of observation. */
interface Change {
  readonly cluster: string;
  readonly from: number;
  to: number;
}

/**
 * Detects which clusters are changing. A change begins with the first write that an API server accepts after an
 * assignment. It ends when every Sync of the cluster is settled in the table. For a cluster that was paused meanwhile
 * it ends with the last accepted write, even if the planner had given the slot away before.
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
    // A client repeats a write whose answer was lost, and this second answer looks like a new write.
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
      for (const row of writtenRows(call.request)) if (isOfType(row, "SyncOnCluster")) onRow(row);
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

/** The largest set always exists at the begin of a change. */
function mostAtOnce(changes: readonly Change[]): readonly string[] {
  let most: readonly string[] = [];
  for (const { from } of changes) {
    const then = changes.filter((other) => other.from <= from && from < other.to);
    const clusters = new Set(then.map(({ cluster }) => cluster));
    if (clusters.size > most.length) most = [...clusters].sort();
  }
  return most;
}

/**
 * The planner leaves a cluster alone after it answers again, or while it is paused. At its turn it gets another
 * attempt.
 */
function isLeftAlone(row: SyncRow): boolean {
  return !isOutstanding(row) || isAway(row) || row.paused !== undefined;
}
