/** Whether the planner has handled every request. Until then, the state of an object is older than the request. */
import { isNotFound } from "#cli/session/rollout-owner.ts";
import type { Session } from "#cli/session/session.ts";
import type { RolloutOverview } from "#shared/fleet/api/rollout-overview.ts";
import type { Wait } from "#shared/fleet/waits/wait.ts";

/** Call this before the state is read that is judged. @param subject - path of a SyncGroup or Sync. */
export async function isHeard(session: Session, owner: string): Promise<boolean> {
  try {
    const overview = await session.api.call<RolloutOverview>({ method: "GET", path: `${owner}/rollout` });
    return !isAwaited(overview.status.waits);
  } catch (error) {
    // Before the first rollout there are no requests to wait for.
    if (isNotFound(error)) return true;
    throw error;
  }
}

export function isAwaited(waits: readonly Wait[]): boolean {
  return waits.some(({ reason }) => reason === "asked");
}
