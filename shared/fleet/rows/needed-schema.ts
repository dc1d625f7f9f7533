import type { GitUpstream } from "#shared/fleet/kinds/source.ts";
import { templatePins } from "#shared/fleet/kinds/template-sources.ts";
import type { DiscoveryRow } from "#shared/fleet/rows/discovery-rows.ts";
import type { ClusterRow, Operations, OwnerRow, SourceRow } from "#shared/fleet/rows/object-rows.ts";
import type { RolloutStateRow, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import { newestRowSchema, rowSchema } from "#shared/fleet/rows/row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";

/** Operations that the version before does not know: its planner would act against them. */
const newOperations = [
  "hold",
  "exempt",
  "gates",
  "rejections",
  "guard",
  "approvals",
  "rollback",
] as const satisfies readonly (keyof Operations)[];

/** The schema that an owner's row needs, so that no function acts on it that does not know its operations gates or guard. */
export function neededSchema(row: OwnerRow): number {
  const hasNew = newOperations.some((name) => row.operations[name] !== undefined);
  return hasNew || hasEnd(row) || hasGates(row) || goesBack(row) || isGuarded(row) || isPinned(row)
    ? newestRowSchema
    : rowSchema;
}

/**
 * The schema of the row of a Source: a version that knows git over HTTPS alone cannot poll another upstream, one that does
 * not know signatures would package what nobody verified, one that does not know filters, full names of references or immutable tags would follow something else, one that does not know inclusions would leave out
 * their files, one that does not know `ignore` would take files that are left out, and one that does not know the end of a suspension would never
 * poll it again.
 */
export function sourceSchema(row: Pick<SourceRow, "operations" | "spec">): number {
  const { git, immutableTags, include, ignore } = row.spec;
  const isNew = immutableTags === true || (include ?? ignore) !== undefined;
  return hasEnd(row) || git === undefined || isNew || isNewGit(git) ? newestRowSchema : rowSchema;
}

function isNewGit({ credentials, verify, ref }: GitUpstream): boolean {
  return (
    verify !== undefined ||
    (ref?.tagFilter ?? ref?.name) !== undefined ||
    !(credentials === undefined || credentials.kind === "basic" || credentials.kind === "bearer")
  );
}

function hasEnd({ operations }: Pick<OwnerRow | SourceRow, "operations">): boolean {
  return operations.suspended?.until !== undefined;
}

/**
 * The schema of the rows of a Cluster: a planner that does not know cordons would assign something to it, a function
 * that does not know zones would wake a worker that cannot reach it, and a worker that does not know other addresses
 * would ask at the one that EKS names.
 */
export function clusterSchema(row: Pick<ClusterRow, "operations" | "spec" | "discovered">): number {
  const { operations, spec, discovered } = row;
  const zone = spec.access?.zone ?? discovered?.access?.zone;
  const isOld = operations.cordoned === undefined && (zone ?? spec.eks?.endpointOverride) === undefined;
  return isOld ? rowSchema : newestRowSchema;
}

/** The schema of the row of a ClusterDiscovery: a version that does not know zones would register its clusters without. */
export function discoverySchema({ spec: { access } }: Pick<DiscoveryRow, "spec">): number {
  return (access?.zone ?? access?.zonesByVpc) === undefined ? rowSchema : newestRowSchema;
}

function hasGates(row: OwnerRow): boolean {
  return (
    row.type === "SyncGroup" && row.spec.rollout.stages.some(({ before, after }) => (before ?? after) !== undefined)
  );
}

function goesBack(row: OwnerRow): boolean {
  return row.type === "SyncGroup" && row.spec.rollout.onFailure === "rollback";
}

/** A version that does not know the revisions of templates would give clusters what the Source follows. */
function isPinned(row: OwnerRow): boolean {
  return templatePins(row.type === "SyncGroup" ? row.spec.templates : [row.spec]).length > 0;
}

function isGuarded(row: OwnerRow): boolean {
  return row.type === "SyncGroup" && row.spec.guard !== undefined;
}

/**
 * The schema of a row of the planner: a stage run with gates, with skipped targets, or a rollback, is never taken for
 * one without, a planner that does not know windows or cordons would never release what they hold back, a worker
 * that does not know windows would begin too late, and functions that do not know zones would call a cluster failed whose
 * zone is down.
 */
export function plannedSchema(row: object): number {
  const {
    gates,
    rollback,
    takenOut,
    holds = [],
  }: Partial<Pick<StageRunRow, "gates" | "rollback" | "takenOut" | "holds">> = row;
  const { catchUpsHeld, ledger = [] }: Partial<Pick<RolloutStateRow, "catchUpsHeld" | "ledger">> = row;
  const waits = [...holds, ...(catchUpsHeld?.holds ?? [])].some(
    ({ cause }) => cause === "window" || cause === "cordon",
  );
  const wentBack = ledger.some(({ takesBack }) => takesBack !== undefined);
  const { desired, paused }: Partial<Pick<SyncRow, "desired" | "paused">> = row;
  const added = gates ?? rollback ?? takenOut ?? desired?.beginBefore ?? paused?.zone;
  const isNew = added !== undefined || waits || wentBack;
  return isNew ? newestRowSchema : rowSchema;
}
