import { syncsOn } from "#shared/adapters/forget-syncs.ts";
import type { Clock } from "#shared/base/clock.ts";
import { errorCode, errorMessage, isConflict } from "#shared/base/errors.ts";
import { inParts } from "#shared/base/in-parts.ts";
import { canonicalJson } from "#shared/base/json.ts";
import { runConcurrently } from "#shared/base/run-concurrently.ts";
import { specOf } from "#shared/fleet/rows/cluster-entry.ts";
import { due, hasCome } from "#shared/fleet/rows/due.ts";
import { timerOf } from "#shared/fleet/rows/next-work.ts";
import type { ClusterRow } from "#shared/fleet/rows/object-rows.ts";
import { isAway, type SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Log, Table } from "#shared/ports.ts";

/** The cluster's worker writes the same rows, each at most a few times. */
const wakeTries = 5;
const rowsAtOnce = 25;
const clustersAtOnce = 8;

/** Whether the cluster is reached in another way than before: from another zone, at another address or with other credentials. */
export function hasOtherWay(before: ClusterRow, after: ClusterRow): boolean {
  return wayText(before) !== wayText(after);
}

function wayText(row: ClusterRow): string {
  const { eks, endpoint, access } = specOf(row);
  return canonicalJson([eks ?? {}, endpoint ?? {}, access ?? {}]);
}

export interface WakePorts {
  readonly table: Table;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * The Syncs that wait because their cluster did not answer are due now: what their back-off knows is about the former way.
 * A row that others write all the time is left to its own timer, and so are those of a cluster whose rows cannot be written.
 * @returns the clusters with such Syncs.
 */
export async function wakeUnreachable(ports: WakePorts, clusters: readonly string[]): Promise<readonly string[]> {
  const woken: string[] = [];
  await runConcurrently(clusters, clustersAtOnce, async (cluster) => {
    try {
      if ((await wakeOne(ports, cluster)) > 0) woken.push(cluster);
    } catch (error) {
      const reason = { code: errorCode(error), error: errorMessage(error) };
      ports.log.warn("the Syncs of a cluster wait for their own timers, because they could not be woken", {
        cluster,
        ...reason,
      });
    }
  });
  return woken;
}

/** @returns the number of Syncs. */
async function wakeOne({ table, clock }: WakePorts, cluster: string): Promise<number> {
  let woken = 0;
  for (let attempt = 1; attempt <= wakeTries; attempt++) {
    const now = clock.now();
    const waiting = (await syncsOn(table, cluster, "left out")).filter((row) => isWaiting(row, now));
    const lost = await Promise.all(
      inParts(waiting, rowsAtOnce).map(async (rows) => {
        const writes = rows.map((row) => ({ put: dueNow(row, now), when: { version: row.version } }));
        try {
          await table.write(writes);
          woken += rows.length;
          return false;
        } catch (error) {
          if (isConflict(error)) return true;
          throw error;
        }
      }),
    );
    if (!lost.includes(true)) break;
  }
  return woken;
}

function isWaiting(row: SyncRow, now: Date): boolean {
  const { observed } = row;
  return isAway(row) && observed?.nextAt !== undefined && !hasCome(observed.nextAt, now);
}

function dueNow(row: SyncRow, now: Date): SyncRow {
  const observed = { ...(row.observed as NonNullable<SyncRow["observed"]>), nextAt: now.toISOString() };
  const next = { ...row, observed, version: row.version + 1 };
  return due(next, timerOf(next));
}
