import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import type { Member } from "#shared/fleet/rollout/desired-plan.ts";
import type { Known } from "#shared/fleet/rollout/facts.ts";

/** @throws StarlingError when the list is lost. */
export async function readMembers({ rolloutState }: Known, ports: PlannerPorts): Promise<readonly Member[]> {
  return rolloutState.members === undefined ? [] : ports.lists.read<Member>(rolloutState.members);
}

/** Members in their order: another list has another order. */
export const nobodyChecked = { checked: 0, counts: { ready: 0, changing: 0, failed: 0, unreachable: 0, waiting: 0 } };
