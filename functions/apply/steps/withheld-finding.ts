import type { OperationContext, OperationResult } from "#functions/apply/steps/operation.ts";
import { defined } from "#shared/base/defined.ts";
import type { Observed, Phase } from "#shared/fleet/rows/sync-row.ts";
import type { Withheld } from "#shared/fleet/sync/withheld.ts";
import { outOfTime } from "#shared/kube/engine/own-deadline.ts";
import { reportedReason } from "#shared/kube/reasons.ts";

/** Whatever else is parked has failed. */
const endsElsewhere: ReadonlySet<Phase> = new Set<Phase>(["Ready", "Gone", "Unreachable"]);

/**
 * What a look at a Sync comes to that is parked: nothing goes on there, so that it has failed unless it turned out well.
 * @param before - what was seen of the same attempt: where nothing of it can be looked at, or not to the end, that stands.
 */
export function pausedFinding(found: OperationResult, why: Withheld, before: Observed | undefined): OperationResult {
  if (endsElsewhere.has(found.phase)) return found;
  const isUnseen = found.phase === "Reachable" || found.reason === outOfTime.reason;
  const seen = isUnseen ? { ...found, ...lastSeen(before) } : found;
  if (seen.phase === "Failed" && seen.message.includes(why.message)) return seen;
  const said = seen.message === "" || seen.reason === why.reason ? seen.message : `${seen.message}; ${why.message}`;
  const message = said === "" ? why.message : said;
  return { ...seen, phase: "Failed", reason: seen.phase === "Failed" ? seen.reason : why.reason, message };
}

function lastSeen(
  before: Observed | undefined,
): Pick<OperationResult, "phase" | "reason" | "message" | "problems" | "objects" | "remembered"> {
  const isSilent = before?.phase === "Unreachable" || before?.phase === "Reachable";
  if (before === undefined || isSilent) return { phase: "Applying", reason: reportedReason(""), message: "" };
  const { phase, reason, message, problems, objects, remembered } = before;
  // Whoever recovers it goes by what the cluster was found to remember.
  return { phase, reason: reportedReason(reason), message, problems, objects, ...defined({ remembered }) };
}

/** @param standing - what was done, and what not. */
export function withheldFinding(standing: string, why: Withheld): OperationResult {
  return { phase: "Applying", reason: why.reason, message: `${standing}: ${why.message}`, withheld: why };
}

/** Why nothing may be written now; it is asked anew. */
export async function withheldFromNow({
  withheld,
  gate,
  row,
}: Pick<OperationContext, "withheld" | "gate" | "row">): Promise<Withheld | undefined> {
  return withheld ?? gate.ask(row.desired.attempt);
}
