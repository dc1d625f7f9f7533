import { jittered, later } from "#shared/fleet/rows/due.ts";
import { heldBy, intervalOf, isAsked, isPruneAsked, type Phase, type SyncRow } from "#shared/fleet/rows/sync-row.ts";

/** How often is looked whether a freeze still holds, for messages that were lost. */
const heldSeconds = 300;

type Scheduled = Pick<SyncRow, "desired" | "observed" | "uid" | "reconcile" | "operations" | "held" | "parked">;

/**
 * When the cluster's worker should look at this Sync next; undefined when there is nothing left to do.
 * A new assignment is due when it may begin; a settled one after its interval, for drift and health. What a freeze holds is
 * due when that ends; who is told of a thaw looks at once.
 */
export function nextWork(row: Scheduled): string | undefined {
  if (row.parked !== undefined) return nextParkedLook({ ...row, parked: row.parked });
  const held = heldBy(row);
  if (held === undefined) return isLeftToResume(row) ? row.observed?.at : nextLook(row);
  const look = isLookedAt(row) ? nextLook(row) : undefined;
  const times = [later(held.at, heldSeconds), held.until, look];
  return times.filter((time) => time !== undefined).sort()[0];
}

/** Looks that write nothing go on under a freeze; what is only begun waits. */
function isLookedAt({ desired, observed }: Pick<SyncRow, "desired" | "observed">): boolean {
  if (observed?.attempt !== desired.attempt) return false;
  return observed.phase !== "Applying" && observed.phase !== "Retrying";
}

/** Due all the time, so that a resume does at once what a suspend kept from being done. */
function isLeftToResume({ desired, observed }: Pick<SyncRow, "desired" | "observed">): boolean {
  return observed?.withheld !== undefined && observed.attempt === desired.attempt && desired.action !== "orphan";
}

/** Whatever a freeze or a suspend says. */
export function nextLook(row: Omit<Scheduled, "held" | "parked">): string | undefined {
  const { desired, observed } = row;
  if (desired.action === "orphan") return undefined;
  if (observed === undefined || observed.attempt !== desired.attempt) return beginsAt(row);
  // Only the planner starts anything: what answers again waits for its word.
  if (observed.phase === "Gone" || observed.phase === "Reachable") return undefined;
  if (isAsked(row)) return desired.assignedAt;
  if (observed.nextAt !== undefined) return observed.nextAt;
  if (isPruneAsked(row)) return desired.assignedAt;
  return afterInterval({ ...row, observed });
}

/** Nobody begins the newest assignment before. */
export function beginsAt({ desired }: Pick<SyncRow, "desired">): string {
  return desired.startAt ?? desired.assignedAt;
}

/** That it is parked is told at once; from then on it is looked at like what is settled. */
function nextParkedLook(row: Scheduled & Required<Pick<SyncRow, "parked">>): string | undefined {
  const { desired, observed, parked } = row;
  if (desired.action === "orphan" || observed?.phase === "Gone") return undefined;
  if (observed === undefined || isAsked(row)) return parked.at;
  if (observed.attempt !== desired.attempt) {
    // Nothing that is looked at is left of what was wanted before.
    return observed.applied?.attempt === observed.attempt ? afterInterval({ ...row, observed }) : parked.at;
  }
  return observed.nextAt ?? (restsWhenParked.has(observed.phase) ? afterInterval({ ...row, observed }) : parked.at);
}

const restsWhenParked: ReadonlySet<Phase> = new Set<Phase>(["Ready", "Failed", "Unreachable"]);

function afterInterval({ desired, observed, uid }: Required<Pick<SyncRow, "desired" | "observed" | "uid">>): string {
  return later(observed.at, jittered(intervalOf(desired), `${uid}${observed.at}`));
}
