/** The one word for a Sync on a cluster, from the rows that planner and worker wrote: what every list and page shows. */
import { canonicalJson } from "#shared/base/json.ts";
import type { ApplyOptions } from "#shared/fleet/kinds/sync-template.ts";
import type { OwnerState, OwnerStatus } from "#shared/fleet/rows/object-rows.ts";
import { type StageRunPhase, stalledPhases } from "#shared/fleet/rows/rollout-rows.ts";
import { holdOf, type SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { type SyncStateWord, syncStateOf } from "#shared/fleet/rows/sync-state-of.ts";
import { isDrifted } from "#shared/fleet/sync/conditions.ts";

/** What the cluster's stage moves to, or else is on. */
export interface DesiredRendering {
  readonly revision: string;
  readonly rollout: number;
  /** Where the leg stands that goes through the stage; or the cluster is to be brought to where its stage is. */
  readonly place: StageRunPhase | "catchUp" | undefined;
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
export function outOfSync(row: SyncRow, desired: DesiredRendering | undefined): OutOfSync | undefined {
  if (desired === undefined || row.desired.action !== "apply") return undefined;
  const same =
    desired.renderDigest === row.desired.renderDigest &&
    canonicalJson(desired.apply) === canonicalJson(row.desired.apply);
  if (same) return undefined;
  return { revision: desired.revision, rollout: desired.rollout, reason: whyBehind(desired) };
}

/** Why what is wanted was not assigned. */
export function whyBehind({ place, problem }: Pick<DesiredRendering, "place" | "problem">): string {
  if (problem !== undefined) return `cannot be rendered: ${problem}`;
  if (place === undefined) return "its stage went on without it";
  if (place === "Halted") return "the rollout is halted";
  return stalledPhases.some((phase) => phase === place) ? "the rollout stands still" : "waits for its turn";
}

/**
 * The word under which the state index has a Sync: whoever counts a group by the index finds what is ready and holds drift
 * apart from what is well, without reading a row.
 */
export function indexedState(row: Pick<SyncRow, "desired" | "observed" | "paused">): SyncStateWord | "Drifted" {
  const state = syncStateOf(row);
  return state === "Ready" && isDrifted(row.observed) ? "Drifted" : state;
}

/**
 * A Sync without a worker's word about its newest attempt is `Assigned`; what is ready and behind is `OutOfSync`.
 * What is ready and holds drift that nobody puts back is `Drifted`.
 * @param row - absent when nothing is assigned, or what was is forgotten.
 * @param plan - of a Sync that a user wrote: it is no better than what keeps its planner from going on.
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

/** What the planner said of what was there. */
const haveAll: ReadonlySet<OwnerState> = new Set(["Complete", "Drifted"]);

const stuck: ReadonlySet<OwnerState> = new Set(["Halted", "Stalled", "Frozen", "Waiting"]);
