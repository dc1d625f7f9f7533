import { type Brake, type Freeze, freezeOver, freezeText } from "#shared/fleet/rows/brake-row.ts";
import type { ClusterRow, SubjectRow } from "#shared/fleet/rows/object-rows.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";

/** What decides whether a cluster may be written to for a Sync. */
export interface Standing {
  /** Each undefined when it does not exist any more. */
  readonly row: SyncRow | undefined;
  readonly subject: SubjectRow | undefined;
  readonly cluster: ClusterRow | undefined;
  readonly brake: Brake;
}

/** Why nothing is written to the cluster for a Sync, in words for people. */
export type Withheld =
  | { readonly reason: "Superseded" | "Suspended" | "Unreadable"; readonly message: string }
  | { readonly reason: "Frozen"; readonly message: string; readonly freeze: Freeze };

/**
 * Whether the next write of an attempt is still wanted: read again before everything that writes, since a suspend, a
 * freeze and a newer assignment hold for what was begun before them, too.
 */
export function withheldFrom(attempt: number, standing: Standing, now: Date): Withheld | undefined {
  const { row, subject, cluster, brake } = standing;
  if (row === undefined || cluster === undefined || row.desired.action === "orphan") {
    return { reason: "Superseded", message: "it was forgotten meanwhile" };
  }
  if (row.desired.attempt !== attempt) return { reason: "Superseded", message: "a newer assignment has come" };
  const suspended = subject?.operations.suspended;
  if (suspended !== undefined) return { reason: "Suspended", message: `suspended by ${suspended.by}` };
  const freeze = freezeOver(brake, cluster.labels, now);
  return freeze === undefined ? undefined : { reason: "Frozen", message: freezeText(freeze), freeze };
}
