/** Whether what was asked for has been taken up: how things stand before that is how they stood before anybody asked. */
import { isNotFound } from "#cli/session/rollout-owner.ts";
import type { Session } from "#cli/session/session.ts";
import type { RolloutOverview } from "#shared/fleet/api/rollout-overview.ts";
import type { Wait } from "#shared/fleet/waits/wait.ts";

/** Ask this first, and read what is judged after it. @param subject - path of a SyncGroup or Sync. */
export async function isHeard(session: Session, owner: string): Promise<boolean> {
  try {
    const overview = await session.api.call<RolloutOverview>({ method: "GET", path: `${owner}/rollout` });
    return !isAwaited(overview.status.waits);
  } catch (error) {
    // Before the first rollout nothing stands still.
    if (isNotFound(error)) return true;
    throw error;
  }
}

export function isAwaited(waits: readonly Wait[]): boolean {
  return waits.some(({ reason }) => reason === "asked");
}
