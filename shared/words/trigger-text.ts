import type { RolloutSpec } from "#shared/fleet/api/objects.ts";
import { shortPrincipal } from "#shared/words/object-state.ts";

/** Why there is a rollout: `plan`; of a rollback `rollback to 117 by ana: INC-4711`. */
export function triggerText({ trigger, rollback, asked }: Pick<RolloutSpec, "trigger" | "rollback" | "asked">): string {
  if (rollback === undefined || asked === undefined) return trigger;
  const why = asked.reason === undefined ? "" : `: ${asked.reason}`;
  return `${trigger} to ${rollback} by ${shortPrincipal(asked.by)}${why}`;
}
