import { clusterLabels } from "#shared/fleet/rows/cluster-entry.ts";
import { type Freeze, type FreezeState, freezeOver, freezeText } from "#shared/fleet/rows/freezes-row.ts";
import { syncName } from "#shared/fleet/rows/keys.ts";
import type { ClusterRow, OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import { suspendedText } from "#shared/fleet/rows/suspension.ts";
import { isHeldBack, type Paused, type SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Among } from "#shared/kube/reasons.ts";

/** The rows that decide whether a cluster may be written to for a Sync. */
export interface Standing {
  /** Each is undefined when it no longer exists. */
  readonly row: SyncRow | undefined;
  readonly owner: OwnerRow | undefined;
  readonly cluster: ClusterRow | undefined;
  readonly freezeState: FreezeState;
}

/** Why nothing is written to the cluster for a Sync, in words for people. */
export type Withheld =
  | {
      readonly reason: Among<"Paused" | "Withdrawn" | "Unreadable"> | "Superseded" | "Waiting" | "Suspended";
      readonly message: string;
    }
  | { readonly reason: "Frozen"; readonly message: string; readonly freeze: Freeze };

/**
 * Whether the next write of an attempt is still desired. It is asked again before everything that writes, because a
 * suspend, a freeze and a newer assignment also apply to attempts that began before them.
 */
export function withheldFrom(
  attempt: number,
  standing: Omit<Standing, "cluster"> & { readonly cluster: Parameters<typeof clusterLabels>[0] | undefined },
  now: Date,
): Withheld | undefined {
  const { row, owner, cluster, freezeState } = standing;
  if (row === undefined || cluster === undefined || row.desired.action === "orphan") {
    return { reason: "Superseded", message: "it was forgotten meanwhile" };
  }
  const isNewest = row.desired.attempt === attempt;
  if (!isNewest && !isStillHeld(row, attempt)) return { reason: "Superseded", message: "a newer assignment has come" };
  if (isNewest && row.paused !== undefined) return pausedBy(row, row.paused);
  const suspended = owner?.operations.suspended;
  if (suspended !== undefined) return { reason: "Suspended", message: suspendedText(suspended) };
  if (isWithdrawn(row, owner)) return { reason: "Withdrawn", message: "it is to stay" };
  const freeze = freezeOver(freezeState, clusterLabels(cluster), now);
  return freeze && frozenBy(freeze);
}

/** While the newest assignment is held back, the drift of what was applied before is corrected. */
function isStillHeld({ paused, observed }: SyncRow, attempt: number): boolean {
  return paused !== undefined && isHeldBack(paused) && observed?.applied?.attempt === attempt;
}

export function frozenBy(freeze: Freeze): Withheld {
  return { reason: "Frozen", message: freezeText(freeze), freeze };
}

/** Only another assignment lets the Sync continue, and only the planner makes one. */
export function pausedBy({ owner: { namespace, kind, name } }: Pick<SyncRow, "owner">, paused: Paused): Withheld {
  const { reason, freeze, rejected, zone } = paused;
  if (rejected === true) return { reason: "Waiting", message: `waits for another rollout: ${reason}` };
  if (isHeldBack(paused) || zone !== undefined) return { reason: "Waiting", message: `waits for its turn: ${reason}` };
  if (freeze !== undefined) return { reason: "Waiting", message: `waits for its turn, which freeze ${freeze} took` };
  const verb = `starling reconcile ${kind.toLowerCase()}/${name} -n ${namespace}`;
  return { reason: "Paused", message: `paused (${reason}); a newer rollout tries again; to try again now: ${verb}` };
}

/** A deletion of what the spec desires by now, whatever an older rollout had, or of objects that are left behind. */
function isWithdrawn({ desired, name }: SyncRow, owner: OwnerRow | undefined): boolean {
  if (desired.action !== "delete" || owner === undefined) return false;
  const { deletion } = owner.operations;
  if (deletion !== undefined) return deletion.cascade === "orphan";
  if (desired.asked === true) return false;
  if (owner.type === "Sync") return owner.name === name;
  const of = { namespace: owner.namespace, kind: owner.type, name: owner.name };
  return owner.spec.templates.some((template) => syncName(of, template.name) === name);
}
