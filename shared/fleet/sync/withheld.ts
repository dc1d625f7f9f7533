import { type Brake, type Freeze, freezeOver, freezeText } from "#shared/fleet/rows/brake-row.ts";
import { labelsOf } from "#shared/fleet/rows/cluster-entry.ts";
import { syncName } from "#shared/fleet/rows/keys.ts";
import type { ClusterRow, SubjectRow } from "#shared/fleet/rows/object-rows.ts";
import type { Parked, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Among } from "#shared/kube/reasons.ts";

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
  | {
      readonly reason: Among<"Parked" | "Withdrawn" | "Unreadable"> | "Superseded" | "Waiting" | "Suspended";
      readonly message: string;
    }
  | { readonly reason: "Frozen"; readonly message: string; readonly freeze: Freeze };

/**
 * Whether the next write of an attempt is still wanted: read again before everything that writes, since a suspend, a
 * freeze and a newer assignment hold for what was begun before them, too.
 */
export function withheldFrom(
  attempt: number,
  standing: Omit<Standing, "cluster"> & { readonly cluster: Parameters<typeof labelsOf>[0] | undefined },
  now: Date,
): Withheld | undefined {
  const { row, subject, cluster, brake } = standing;
  if (row === undefined || cluster === undefined || row.desired.action === "orphan") {
    return { reason: "Superseded", message: "it was forgotten meanwhile" };
  }
  if (row.desired.attempt !== attempt) return { reason: "Superseded", message: "a newer assignment has come" };
  if (row.parked !== undefined) return parkedBy(row, row.parked);
  const suspended = subject?.operations.suspended;
  if (suspended !== undefined) return { reason: "Suspended", message: `suspended by ${suspended.by}` };
  if (isWithdrawn(row, subject)) return { reason: "Withdrawn", message: "it is to stay" };
  const freeze = freezeOver(brake, labelsOf(cluster), now);
  return freeze && frozenBy(freeze);
}

export function frozenBy(freeze: Freeze): Withheld {
  return { reason: "Frozen", message: freezeText(freeze), freeze };
}

/** Only another assignment lets it go on, and only the planner gives one. */
export function parkedBy(
  { subject: { namespace, kind, name } }: Pick<SyncRow, "subject">,
  { reason, freeze }: Parked,
): Withheld {
  if (freeze !== undefined) return { reason: "Waiting", message: `waits for its turn, which freeze ${freeze} took` };
  const verb = `starling reconcile ${kind.toLowerCase()}/${name} -n ${namespace}`;
  return { reason: "Parked", message: `parked (${reason}); it has another turn by newer content, or by: ${verb}` };
}

/** A deletion of what the spec wants by now, whatever an older content says, or of what is left to whoever has it. */
function isWithdrawn({ desired, name }: SyncRow, subject: SubjectRow | undefined): boolean {
  if (desired.action !== "delete" || subject === undefined) return false;
  const { deletion } = subject.operations;
  if (deletion !== undefined) return deletion.cascade === "orphan";
  if (subject.type === "Sync") return subject.name === name;
  const of = { namespace: subject.namespace, kind: subject.type, name: subject.name };
  return subject.spec.templates.some((template) => syncName(of, template.name) === name);
}
