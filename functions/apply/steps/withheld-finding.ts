import type { OperationContext, OperationResult } from "#functions/apply/steps/operation.ts";
import { defined } from "#shared/base/defined.ts";
import type { Observed, Phase } from "#shared/fleet/rows/sync-row.ts";
import type { Withheld } from "#shared/fleet/sync/withheld.ts";
import { outOfTime } from "#shared/kube/engine/own-deadline.ts";
import { reportedReason } from "#shared/kube/reasons.ts";

/** Every other paused Sync has failed. */
const endsElsewhere: ReadonlySet<Phase> = new Set<Phase>(["Ready", "Gone", "Unreachable"]);

/**
 * The result of an operation on a paused Sync: nothing continues there, so that it has failed unless everything is
 * ready.
 * @param before - what was seen of the same attempt; it stands where nothing could be checked, or not everything.
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
  // A person who recovers the Sync decides by what the cluster was found to remember.
  return { phase, reason: reportedReason(reason), message, problems, objects, ...defined({ remembered }) };
}

/** @param standing - what was done, and what was not. */
export function withheldFinding(standing: string, why: Withheld): OperationResult {
  return { phase: "Applying", reason: why.reason, message: `${standing}: ${why.message}`, withheld: why };
}

/** The reason why nothing may be written now; the gate is asked again. */
export async function withheldFromNow({
  withheld,
  gate,
  row,
}: Pick<OperationContext, "withheld" | "gate" | "row">): Promise<Withheld | undefined> {
  return withheld ?? gate.ask(row.desired.attempt);
}
