/** Plans the turns of a pass, and what to write about a worker that died there. */

import type { HeldLease } from "#functions/apply/lease/held-lease.ts";
import { messagesOf, nextRow, writesOf } from "#functions/apply/worker/check-outcome.ts";
import { inTurn } from "#functions/apply/worker/in-turn.ts";
import type { ClusterReading } from "#functions/apply/worker/read-cluster.ts";
import { type Apart, deathAmong, isUnsure, takenApart } from "#functions/apply/worker/worker-deaths.ts";
import { syncFields } from "#shared/fleet/log-fields.ts";
import type { ClusterRow } from "#shared/fleet/rows/object-rows.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { type Message, ownerKey } from "#shared/messages.ts";
import type { Log, Write } from "#shared/ports.ts";

export interface PlannedTurns extends Apart {
  /** Writes that record the death of a worker; empty when none died. */
  readonly writes: readonly Write[];
  /** True when each turn is noted, even without anything to write. */
  readonly isReported: boolean;
}

interface Planning {
  readonly cluster: ClusterRow;
  readonly lease: HeldLease;
  /** True for the first turn of the invocation. */
  readonly isFirst: boolean;
  readonly now: Date;
  readonly log: Log;
  readonly messages: Message[];
}

export function planTurns({ due, owners, routine }: ClusterReading, planning: Planning): PlannedTurns {
  const { cluster, lease, isFirst, now, log, messages } = planning;
  const turnsOf = (rows: readonly SyncRow[]) =>
    inTurn(rows, { now, routine }).map((row) => ({ row, owner: owners.get(ownerKey(row.owner)) }));
  const turns = turnsOf(due);
  const careful = isFirst && isUnsure(turns, lease.lease);
  const found = isFirst && !careful ? deathAmong(turns, lease.lease, { now, cluster }) : undefined;
  if (found === undefined) {
    const apart = takenApart(turns, { now, isFirst });
    return { ...apart, isReported: apart.alone || careful, writes: [] };
  }
  const { deaths, sk } = found.row;
  log.error("a worker died", { code: "WorkerDied", ...syncFields(found.row), deaths });
  messages.push(...messagesOf(found, now).filter(({ to }) => to === "report"));
  const rest = due.filter((row) => row.sk !== sk);
  const left = turnsOf(found.observed === undefined ? [...rest, nextRow(found)] : rest);
  const apart = takenApart(left, { now, isFirst });
  return { ...apart, isReported: apart.alone, writes: writesOf(found) };
}
