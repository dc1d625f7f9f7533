import { refusal } from "#functions/api/request/refusal.ts";
import type { Facts } from "#functions/api/write/rollout-verb.ts";
import { templatesDesired } from "#shared/fleet/rollout/lost-templates.ts";
import { newRejections, withoutRejected, withRejected } from "#shared/fleet/rollout/rejection.ts";
import { newRollback, type RollbackPlan, rollbackPlan, templatesAfter } from "#shared/fleet/rollout/rollback.ts";
import type { Operations } from "#shared/fleet/rows/object-rows.ts";
import { isOfType } from "#shared/fleet/rows/stored-row.ts";

/**
 * @param deletesAdded - templates that a later rollout added are deleted, although the spec has them.
 * @throws StarlingError `NothingToRollBack`.
 */
export function plannedRollback(
  {
    row,
    rows,
    rolloutState,
    body: { to },
    object,
  }: Pick<Facts<"rollback" | "rollback-deleting">, "row" | "rows" | "rolloutState" | "body" | "object">,
  deletesAdded: boolean,
): RollbackPlan {
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
  const { stay, createdAgain } = templatesAfter(answer.plan, rollouts, templatesDesired({ row }));
  const added = deletesAdded ? { stay: [], deletes: stay } : { stay, deletes: [] };
  return { ...answer.plan, ...added, createdAgain };
}

/** The hold keeps every newer commit back until a release. @returns undefined for a dry run, which changes nothing. */
export function decideRollback(deletesAdded: boolean) {
  return (facts: Facts<"rollback" | "rollback-deleting">): Operations | undefined => {
    const { to, deletes } = plannedRollback(facts, deletesAdded);
    const { row, body, act } = facts;
    const rollback = { ...act, to, ...(deletes.length === 0 ? {} : { deletes }) };
    return body.dryRun ? undefined : { ...row.operations, rollback, hold: act };
  };
}
