import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import type { Known } from "#functions/rollout/read-subject.ts";
import { digestOf } from "#shared/base/digest.ts";
import type { Assignment } from "#shared/fleet/rollout/assignments.ts";
import { due, watchdogAt } from "#shared/fleet/rows/due.ts";
import { keys, stateIndex } from "#shared/fleet/rows/keys.ts";
import { nextDesired } from "#shared/fleet/rows/lineage.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { withWorkerHalf } from "#shared/fleet/rows/worker-half.ts";
import type { Message } from "#shared/messages.ts";
import type { Write } from "#shared/ports.ts";

export interface Writing {
  readonly known: Pick<Known, "subject" | "row">;
  /** The Sync as it was read; undefined when there is none yet. */
  readonly before: SyncRow | undefined;
  readonly now: Date;
  readonly ports: Pick<PlannerPorts, "ids" | "installation">;
}

/** The one place where the planner says what a cluster is to have. */
export function assignmentWrite({ cluster, name, desired }: Assignment, assigning: Writing): Write {
  const { known, before: found, now, ports } = assigning;
  const { subject, row: assigner } = known;
  const before = found === undefined || found.subjectUid === assigner.uid ? found : unobserved(found);
  const { parked: _parked, ...kept } = before ?? {};
  const row: SyncRow = {
    ...kept,
    ...keys.sync(cluster, subject.namespace, name),
    type: "SyncOnCluster",
    schema: rowSchema,
    version: (before?.version ?? 0) + 1,
    cluster,
    namespace: subject.namespace,
    name,
    uid: syncUid(ports.installation, { namespace: subject.namespace, name, cluster }),
    subject,
    subjectUid: assigner.uid,
    desired: nextDesired(desired, before, ports.ids.unique()),
    statePk: stateIndex.pk(subject),
    stateSk: stateIndex.sk(desired.action === "orphan" ? "Orphaned" : "Assigned", { cluster, name }),
  };
  const from = desired.startAt === undefined ? now : new Date(desired.startAt);
  const at = desired.action === "orphan" ? undefined : watchdogAt(from, 0);
  return { put: due(row, at, 1), when: before === undefined ? "absent" : { version: before.version } };
}

/** What was left by an object that had the same name is nobody's: nothing of it was assigned by this one. */
function unobserved({ operations: _operations, ...row }: SyncRow): SyncRow {
  return withWorkerHalf(row, { observed: undefined, held: undefined, deaths: row.deaths });
}

/** In the shape of a UUID; the same for the same place, so that a lost table finds its objects again. */
function syncUid(
  installation: string,
  sync: { readonly namespace: string; readonly name: string; readonly cluster: string },
): string {
  const hex = digestOf({ installation, ...sync }).slice("sha256:".length);
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join("-");
}

/** Tells a cluster's worker, when it is to begin. */
export function wakeUp(cluster: string, startAt: string | undefined, now: Date): readonly Message[] {
  if (startAt === undefined) return [{ to: "apply", cluster }];
  const seconds = Math.max(0, Math.ceil((Date.parse(startAt) - now.getTime()) / 1000));
  return [{ to: "apply", cluster, delaySeconds: Math.min(900, seconds) }];
}
