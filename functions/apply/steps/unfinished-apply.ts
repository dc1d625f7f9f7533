import { obstaclesOf } from "#functions/apply/steps/apply-obstacles.ts";
import type { OperationResult } from "#functions/apply/steps/operation.ts";
import { defined } from "#shared/base/defined.ts";
import type { ApplySetResult } from "#shared/kube/engine/apply-set.ts";
import { isOfServiceAway } from "#shared/kube/engine/credential-codes.ts";
import { endsTheRun } from "#shared/kube/engine/object-failure.ts";
import { outOfTime } from "#shared/kube/engine/own-deadline.ts";

/** @param run.goesOn - true when the next run begins further behind: a failure is judged when everything was tried. */
export function unfinishedApply(
  result: ApplySetResult,
  run: { readonly goesOn: boolean; readonly total: number; readonly done: number },
): OperationResult {
  const { total, done } = run;
  const { problems, final, waiting, notBeforeSeconds } = obstaclesOf(result);
  const message = `${done} of ${total} objects applied`;
  const objects = { total, ready: 0, failed: problems.length, foreign: 0 };
  if (result.outcome === "unreachable") {
    const [why] = result.objects.flatMap((object) =>
      object.outcome === "failed" && endsTheRun(object.failure) ? [object.failure] : [],
    );
    const reported = { message: `${message}: ${why?.message}`, problems, objects };
    if (why?.class !== "ours") return { phase: "Unreachable", reason: "Unreachable", ...reported };
    const tried = why.retryable ? "Retrying" : "Failed";
    return { phase: isOfServiceAway(why.reason) ? "Unreachable" : tried, reason: why.reason, ...reported };
  }
  if (result.outcome === "failed" && !run.goesOn) {
    const phase = final ? "Failed" : "Retrying";
    return { phase, reason: "ApplyFailed", message, problems, objects, ...defined({ notBeforeSeconds }) };
  }
  if (result.timeWasUp) {
    const said = `${message}: ${outOfTime.message}`;
    return { phase: "Applying", reason: outOfTime.reason, message: said, problems, objects };
  }
  const detail = waiting === undefined ? "" : `: ${waiting.message}`;
  return { phase: "Applying", reason: waiting?.reason ?? "Applying", message: `${message}${detail}`, objects };
}
