import { refusal } from "#functions/api/request/refusal.ts";
import type { Facts } from "#functions/api/write/rollout-verb.ts";
import { templatesDesired } from "#shared/fleet/rollout/lost-templates.ts";
import { newRejections, withoutRejected, withRejected } from "#shared/fleet/rollout/rejection.ts";
import { newRollback, type RollbackPlan, rollbackPlan, templatesAfter } from "#shared/fleet/rollout/rollback.ts";
import type { Operations } from "#shared/fleet/rows/object-rows.ts";
import { isOfType } from "#shared/fleet/rows/stored-row.ts";

/** @throws StarlingError `NothingToRollBack`. */
export function plannedRollback({
  row,
  rows,
  rolloutState,
  body: { to },
  object,
}: Pick<Facts<"rollback">, "row" | "rows" | "rolloutState" | "body" | "object">): RollbackPlan {
  if (rolloutState === undefined) throw refusal("NothingToRollBack", `${object}: nothing was rolled out yet`);
  const asked = newRollback(row, rolloutState);
  if (to === undefined && asked !== undefined)
    throw refusal(
      "NothingToRollBack",
      `${object}: a rollback to ${asked.to} has not started yet; name another: --to N`,
    );
  // The planner carries out rejections before it rolls back.
  const rejected = newRejections(row, rolloutState).reduce(
    (all, act) =>
      act.do === "reject"
        ? withRejected({ rejected: all }, act, undefined)
        : withoutRejected({ rejected: all }, act.rollout),
    rolloutState.rejected ?? [],
  );
  const answer = rollbackPlan({ ...rolloutState, rejected }, to);
  if (!answer.ok) throw refusal("NothingToRollBack", `${object}: ${answer.message}`);
  const rollouts = rows.filter((one) => isOfType(one, "Rollout"));
  return { ...answer.plan, ...templatesAfter(answer.plan, rollouts, templatesDesired({ row })) };
}

/** The hold keeps every newer commit back until a release. @returns undefined for a dry run, which changes nothing. */
export function decideRollback(facts: Facts<"rollback">): Operations | undefined {
  const { to } = plannedRollback(facts);
  const { row, body, act } = facts;
  return body.dryRun ? undefined : { ...row.operations, rollback: { ...act, to }, hold: act };
}
