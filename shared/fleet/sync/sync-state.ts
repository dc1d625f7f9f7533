/** The state of a Sync on a cluster, from the rows of planner and worker: every list and page shows it. */
import { canonicalJson } from "#shared/base/json.ts";
import type { ApplyOptions } from "#shared/fleet/kinds/sync-template.ts";
import type { OwnerState, OwnerStatus } from "#shared/fleet/rows/object-rows.ts";
import { isStalledPhase, type StageRunPhase } from "#shared/fleet/rows/rollout-rows.ts";
import { holdOf, type SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { type SyncStateWord, syncStateOf } from "#shared/fleet/rows/sync-state-of.ts";
import { isDrifted } from "#shared/fleet/sync/conditions.ts";

/** The rendering of the rollout that the cluster's stage updates to, otherwise of its current one. */
export interface DesiredRendering {
  readonly revision: string;
  readonly rollout: number;
  /** The phase of the stage run in progress; or the cluster has to catch up. */
  readonly place: StageRunPhase | "catchUp" | undefined;
  readonly apply: ApplyOptions;
  /** Absent while it is not rendered yet. */
  readonly renderDigest?: string;
  /** Why it cannot be rendered. */
  readonly problem?: string;
}

/** A newer rollout's rendering that is desired but not assigned yet, with the reason. */
export interface OutOfSync {
  readonly revision: string;
  readonly rollout: number;
  readonly reason: string;
}

/** True when a Sync can be behind: it is ready with its assignment. */
export function isReady(row: SyncRow): boolean {
  return row.observed?.attempt === row.desired.attempt && row.observed.phase === "Ready";
}

/** @returns undefined when the cluster was assigned what is desired. */
export function outOfSync(row: SyncRow, desired: DesiredRendering | undefined): OutOfSync | undefined {
  if (desired === undefined || row.desired.action !== "apply") return undefined;
  const same =
    desired.renderDigest === row.desired.renderDigest &&
    canonicalJson(desired.apply) === canonicalJson(row.desired.apply);
  if (same) return undefined;
  return { revision: desired.revision, rollout: desired.rollout, reason: whyBehind(desired) };
}

/** Why the desired rendering was not assigned. */
export function whyBehind({ place, problem }: Pick<DesiredRendering, "place" | "problem">): string {
  if (problem !== undefined) return `cannot be rendered: ${problem}`;
  if (place === undefined) return "its stage went on without it";
  if (place === "Halted") return "the rollout is halted";
  return isStalledPhase(place) ? "the rollout stands still" : "waits for its turn";
}

/**
 * The state under which the index has a Sync: it distinguishes ready Syncs with drift from healthy ones, so that groups
 * are counted without reading rows.
 */
export function indexedState(row: Pick<SyncRow, "desired" | "observed" | "paused">): SyncStateWord | "Drifted" {
  const state = syncStateOf(row);
  return state === "Ready" && isDrifted(row.observed) ? "Drifted" : state;
}

/**
 * A Sync whose worker has not reported about the newest attempt is `Assigned`; a ready Sync that is behind is
 * `OutOfSync`; a ready Sync with drift that is not corrected is `Drifted`.
 * @param row - absent when nothing is assigned, or the assignment is forgotten.
 * @param plan - status of a Sync that a user wrote: the state is no better than an obstacle of its planner.
 */
export function syncState(
  row: SyncRow | undefined,
  about: { readonly behind?: OutOfSync | undefined; readonly plan?: OwnerStatus | undefined },
): string {
  const planned = about.plan?.state;
  if (row === undefined) return planned === undefined || haveAll.has(planned) ? "Pending" : planned;
  const state = syncStateOf(row);
  if (state === "Failed" && row.paused !== undefined) return state;
  if (holdOf(row) !== undefined) return "Frozen";
  if (state !== "Ready") return state;
  if (planned !== undefined && stuck.has(planned)) return planned;
  if (about.behind !== undefined) return "OutOfSync";
  return isDrifted(row.observed) ? "Drifted" : "Ready";
}

/** The planner's report about an existing Sync. */
const haveAll: ReadonlySet<OwnerState> = new Set(["Complete", "Drifted"]);

const stuck: ReadonlySet<OwnerState> = new Set(["Halted", "Stalled", "Frozen", "Waiting"]);
