/** The one word for a Sync on a cluster, from the rows that planner and worker wrote: what every list and page shows. */
import { canonicalJson } from "#shared/base/json.ts";
import type { ApplyOptions } from "#shared/fleet/kinds/sync-template.ts";
import type { SubjectState, SubjectStatus } from "#shared/fleet/rows/object-rows.ts";
import type { RolloutPhase } from "#shared/fleet/rows/rollout-rows.ts";
import { heldBy, type SyncRow } from "#shared/fleet/rows/sync-row.ts";

/** What the newest rollout of the subject wants on the cluster. */
export interface WantedRendering {
  readonly revision: string;
  readonly rollout: number;
  readonly phase: RolloutPhase;
  readonly apply: ApplyOptions;
  /** Absent while it is not rendered yet. */
  readonly renderDigest?: string;
  /** Why it cannot be rendered. */
  readonly problem?: string;
}

/** What is wanted and not assigned, and why. */
export interface OutOfSync {
  readonly revision: string;
  readonly rollout: number;
  readonly reason: string;
}

/** True when it can be asked at all whether the Sync is behind: it is ready with what was assigned to it. */
export function isReady(row: SyncRow): boolean {
  return row.observed?.attempt === row.desired.attempt && row.observed.phase === "Ready";
}

/** @returns undefined when the cluster was assigned what is wanted. */
export function outOfSync(row: SyncRow, wanted: WantedRendering | undefined): OutOfSync | undefined {
  if (wanted === undefined || row.desired.action !== "apply") return undefined;
  const same =
    wanted.renderDigest === row.desired.renderDigest &&
    canonicalJson(wanted.apply) === canonicalJson(row.desired.apply);
  if (same) return undefined;
  return { revision: wanted.revision, rollout: wanted.rollout, reason: reasonOf(wanted) };
}

function reasonOf({ phase, problem }: WantedRendering): string {
  if (problem !== undefined) return `cannot be rendered: ${problem}`;
  if (phase === "Halted") return "the rollout is halted";
  return phase === "Complete" ? "the rollout left it out" : "waits for its turn";
}

/**
 * A Sync without a worker's word about its newest attempt is `Assigned`; what is ready and behind is `OutOfSync`.
 * @param row - absent when nothing is assigned, or what was is forgotten.
 * @param plan - of a Sync that a user wrote: it is no better than what keeps its planner from going on.
 */
export function syncState(
  row: SyncRow | undefined,
  about: { readonly behind?: OutOfSync | undefined; readonly plan?: SubjectStatus | undefined },
): string {
  const planned = about.plan?.state;
  if (row === undefined) return planned === undefined || planned === "Complete" ? "Pending" : planned;
  if (row.desired.action === "orphan") return "Orphaned";
  if (heldBy(row) !== undefined) return "Frozen";
  if (row.observed?.attempt !== row.desired.attempt) return "Assigned";
  if (!isReady(row)) return row.observed.phase;
  if (planned !== undefined && stuck.has(planned)) return planned;
  return about.behind === undefined ? "Ready" : "OutOfSync";
}

const stuck: ReadonlySet<SubjectState> = new Set(["Halted", "Stalled", "Frozen", "Waiting"]);
