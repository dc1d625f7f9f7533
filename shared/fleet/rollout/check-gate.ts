/** The check after the clusters of a stage: one principal, a program as a rule, approves or rejects. Pure. */

import { secondsOf } from "#shared/fleet/kinds/quantities.ts";
import type { GateState } from "#shared/fleet/rollout/gate-state.ts";
import { later } from "#shared/fleet/rows/due.ts";
import type { Approval } from "#shared/fleet/rows/object-rows.ts";
import type { OpenCheck, StageGates, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";

type Terms = NonNullable<NonNullable<StageGates["after"]>[number]["check"]>;
type Run = Pick<StageRunRow, "gates" | "planHash" | "check" | "stage">;

/** @returns the terms of the check of the stage run; undefined when it has none. */
export function checkOf({ gates, planHash }: Pick<Run, "gates" | "planHash">): Terms | undefined {
  return planHash === undefined ? undefined : gates?.after?.find(({ check }) => check !== undefined)?.check;
}

/** Whether somebody still has to answer. */
export function isCheckOpen({ phase, check }: Pick<StageRunRow, "phase" | "check">): boolean {
  return phase === "Baking" && check !== undefined && check.answer === undefined;
}

/** When a silent principal fails the gate; undefined before it is asked. */
export function checkExpiresAt(run: Run): string | undefined {
  const terms = checkOf(run);
  return terms && run.check && later(run.check.since, secondsOf(terms.expires));
}

/** @returns the state of the check; undefined when the stage run has none. */
export function checkGate(run: Run): GateState | undefined {
  const terms = checkOf(run);
  if (terms === undefined) return undefined;
  const { check, planHash, stage } = run;
  const what = `plan ${planHash} in stage ${stage}`;
  const at = checkExpiresAt(run);
  if (check === undefined || at === undefined)
    return { state: "waiting", message: `${terms.principal} is asked about ${what}`, timers: [] };
  switch (check.answer) {
    case "approved":
      return { state: "passed" };
    case "rejected":
      return { state: "failed", message: `${check.by} rejected ${what}: ${check.reason}` };
    case "silent":
      return {
        state: "failed",
        message: `CheckExpired: ${terms.principal} has not answered about ${what} until ${at}`,
      };
    default: {
      const timers = [{ at, why: "the end of the time for a check" }];
      return { state: "waiting", message: `${terms.principal} has to answer about ${what}, until ${at}`, timers };
    }
  }
}

/** The answer to the open check of the stage run, among those that its owner's row keeps. */
export function answerTo({ stage, planHash, check }: Run, approvals: readonly Approval[]): Approval | undefined {
  return approvals.find(
    (one) => one.stage === stage && one.plan === planHash && check !== undefined && one.check?.since === check.since,
  );
}

/** The stage run after the answer, or after the time for it; the same one before that. */
export function afterCheck(
  stageRun: StageRunRow,
  { approvals, at }: { readonly approvals: readonly Approval[]; readonly at: string },
): StageRunRow {
  const { check } = stageRun;
  if (check === undefined || !isCheckOpen(stageRun)) return stageRun;
  const given = answerTo(stageRun, approvals);
  const answered = (answer: OpenCheck): StageRunRow => ({ ...stageRun, check: answer });
  if (given?.check !== undefined) {
    const { by, reason = "" } = given;
    return answered({ since: check.since, answer: given.check.answer, by, reason });
  }
  const end = checkExpiresAt(stageRun);
  return end !== undefined && end <= at ? answered({ since: check.since, answer: "silent" }) : stageRun;
}

/** Whether the answer has ended the gate: the check is asked again when somebody asks for another turn. */
export function isEndedByCheck({ phase, check }: Pick<StageRunRow, "phase" | "check">): boolean {
  return phase === "GateFailed" && (check?.answer === "rejected" || check?.answer === "silent");
}
