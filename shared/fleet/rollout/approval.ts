/** Approvals: who may let a stage run begin, and how many people have done so. Pure. */

import { secondsOf } from "#shared/fleet/kinds/quantities.ts";
import type { GateState } from "#shared/fleet/rollout/gate-state.ts";
import { differenceText } from "#shared/fleet/rollout/plan-hash.ts";
import { later } from "#shared/fleet/rows/due.ts";
import type { Approval } from "#shared/fleet/rows/object-rows.ts";
import type { AskedPlan, StageGates, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";

type Terms = NonNullable<StageGates["before"]>[number]["approval"];
type Run = Pick<
  StageRunRow,
  "gates" | "planHash" | "planParts" | "outdated" | "approvedBy" | "expired" | "stage" | "startedAt"
>;

/** @returns the terms of the approval that the stage run needs; undefined when it needs none. */
export function approvalOf({ gates, planHash }: Pick<StageRunRow, "gates" | "planHash">): Terms | undefined {
  return planHash === undefined ? undefined : gates?.before?.[0]?.approval;
}

/** The roles of IAM Identity Center: the sessions of each have the names of people. */
export const defaultPersonalRoles: readonly string[] = ["AWSReservedSSO_*"];

/**
 * The one who acts: a role is one approver, whoever assumes it, except a role whose sessions have the names of people.
 * Two such roles of one person are one approver, in whatever case the name is written.
 * @param personalRoles - patterns of the names of such roles, with `*` for any part.
 */
export function approverOf(principal: string, personalRoles = defaultPersonalRoles): string {
  const session = /^arn:[^:]+:sts::(\d+):assumed-role\/([^/]+)\/(.+)$/.exec(principal);
  if (session === null) return principal;
  const [, account = "", role = "", name = ""] = session;
  const isPersonal = personalRoles.some((pattern) => fits(pattern, role));
  return isPersonal ? `person ${name.toLowerCase()}` : `arn:aws:iam::${account}:role/${role}`;
}

/** Whether a pattern of users or roles names one approver in each account: one user, or one role of a program. */
export function countsOnce(pattern: string, personalRoles = defaultPersonalRoles): boolean {
  const [, kind, name = ""] = /:(role|user)\/(.*)$/.exec(pattern) ?? [];
  if (name.includes("*")) return false;
  return kind === "user" || !personalRoles.some((personal) => fits(personal, name));
}

/** Whether one of the patterns fits the principal. A pattern of a role fits every session of the role. */
export function isAllowed({ by }: Pick<Terms, "by">, principal: string): boolean {
  const role = principal.replace(/^(arn:[^:]+):sts::(\d+):assumed-role\/([^/]+)\/.+$/, "$1:iam::$2:role/$3");
  return by.some((pattern) => fits(pattern, role));
}

function fits(pattern: string, text: string): boolean {
  const parts = pattern.split("*").map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, String.raw`\$&`));
  return new RegExp(`^${parts.join("[^:/]*")}$`).test(text);
}

/** The approver as the API has recorded it, by the setting `personalRoles` of then; earlier records have none. */
function recordedApprover({ approver, by }: Approval): string {
  return approver ?? approverOf(by);
}

/**
 * Whether the approver is one of those whose approvals count. The same session is no second approver when the setting
 * `personalRoles` has changed since its approval.
 */
export function hasApproved(
  run: Pick<Run, "gates" | "planHash" | "stage">,
  approvals: readonly Approval[],
  { approver, by }: { readonly approver: string; readonly by: string },
): boolean {
  return validApprovals(run, approvals).some((one) => recordedApprover(one) === approver || one.by === by);
}

/** The approvals of the stage run that count, one for each approver. */
export function validApprovals(
  run: Pick<Run, "gates" | "planHash" | "stage">,
  approvals: readonly Approval[],
): readonly Approval[] {
  const terms = approvalOf(run);
  if (terms === undefined) return [];
  const own = approvals.filter(
    ({ stage, plan, by, check }) =>
      check === undefined && stage === run.stage && plan === run.planHash && isAllowed(terms, by),
  );
  return [...new Map(own.map((one) => [recordedApprover(one), one])).values()];
}

/**
 * The plan whose approvals no longer count: the one before, if somebody has approved it.
 * @param before - the plan that another one replaces, and the one that it replaced.
 */
export function outdatedBy(
  before: (AskedPlan & { readonly outdated?: AskedPlan | undefined }) | undefined,
  next: AskedPlan,
  { stage, approvals = [] }: { readonly stage: string; readonly approvals?: readonly Approval[] | undefined },
): AskedPlan | undefined {
  const earlier = before?.planHash === next.planHash ? before.outdated : undefined;
  if (before === undefined || earlier !== undefined) return earlier;
  const isApproved = approvals.some(
    (one) => one.check === undefined && one.stage === stage && one.plan === before.planHash,
  );
  const found = isApproved ? { planHash: before.planHash, parts: before.parts } : before.outdated;
  return found?.planHash === next.planHash ? undefined : found;
}

/** `; 1 approval of plan ab12 does not count, because the plan now has other clusters (2 before, 3 now)`. */
export function outdatedText(
  run: Pick<Run, "gates" | "stage" | "planParts" | "outdated">,
  approvals: readonly Approval[],
): string {
  const { outdated, planParts } = run;
  if (outdated === undefined || planParts === undefined) return "";
  const { length } = validApprovals({ ...run, planHash: outdated.planHash }, approvals);
  if (length === 0) return "";
  const count = length === 1 ? "1 approval" : `${length} approvals`;
  const verb = length === 1 ? "does" : "do";
  return `; ${count} of plan ${outdated.planHash} ${verb} not count, because the plan now has ${differenceText(outdated.parts, planParts)}`;
}

/** When nobody can approve any more. An approval that was given does not expire. */
export function expiresAt(run: Run): string | undefined {
  const terms = approvalOf(run);
  return terms && later(run.startedAt, secondsOf(terms.expires));
}

/** @returns the state of the gate before the stage run's targets; undefined when it has none. */
export function gateBefore(run: Run, approvals: readonly Approval[]): GateState | undefined {
  const terms = approvalOf(run);
  const at = expiresAt(run);
  if (terms === undefined || at === undefined) return undefined;
  if (run.approvedBy !== undefined) return { state: "passed" };
  const { length } = validApprovals(run, approvals);
  const what = `${length} of ${terms.count} approvals of plan ${run.planHash} in stage ${run.stage}${outdatedText(run, approvals)}`;
  if (run.expired === true) return { state: "failed", message: `ApprovalExpired: ${what} until ${at}` };
  if (length >= terms.count) return { state: "passed" };
  return {
    state: "waiting",
    message: `${what}, until ${at}`,
    timers: [{ at, why: "the end of the time for an approval" }],
  };
}

/** The stage run after its approval was given, or its time is over; the same one before that. */
export function afterApproval(
  stageRun: StageRunRow,
  { approvals, at }: { readonly approvals: readonly Approval[]; readonly at: string },
): StageRunRow {
  const gate = stageRun.approvedBy === undefined ? gateBefore(stageRun, approvals) : undefined;
  if (gate?.state === "passed")
    return { ...stageRun, approvedBy: validApprovals(stageRun, approvals).map(({ by }) => by) };
  const isOver = gate?.state === "waiting" && gate.timers.every((timer) => timer.at <= at);
  return isOver ? { ...stageRun, expired: true } : stageRun;
}
