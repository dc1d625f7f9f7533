import { expect } from "vitest";
import { overviewOf } from "#functions/api/read/read-overview.ts";
import { StarlingError } from "#shared/base/errors.ts";
import type { WaitReason } from "#shared/fleet/waits/wait.ts";
import type { PlannerModel } from "#test/support/planner-model/planner-model.ts";
import { owner } from "#test/support/planner-world.ts";

/** Waits that end by themselves, so that none of them is the only one when nothing goes on. */
const passing: ReadonlySet<WaitReason> = new Set<WaitReason>([
  ...(["asked", "slots", "worker", "rendering", "reconcile", "bake", "stage"] as const),
]);
/** Nothing is open: all that is desired was given, or there is nobody to give it to. */
const closed: ReadonlySet<string> = new Set(["Complete", "Drifted", "Degraded", "NoClusters", "ClusterNotFound"]);

/** After a long rest, whatever is not done waits for something with a verb, a time, or a name: that of a window that never opens again. */
export async function expectNamedWaits(model: PlannerModel): Promise<void> {
  if (model.isGone()) return;
  const overview = await overviewOf(model.apiPorts(), owner).catch((error: unknown) => {
    if (error instanceof StarlingError && error.retry === "permanent") return undefined;
    throw error;
  });
  if (overview === undefined) return;
  const { state = "", waits } = overview.status;
  // A bake without an end waits for an alarm that cannot be read.
  const lasting = waits.filter(
    ({ reason, until }) => !passing.has(reason) || (reason === "bake" && until === undefined),
  );
  const shown = waits.map(({ reason, message }) => `${reason}: ${message}`);
  const isNamed = closed.has(state) || lasting.length > 0;
  expect(isNamed, `idle and ${state}, and nothing but: ${shown.join("; ")}`).toBe(true);
  // Most verbs do nothing before the resume, which is named.
  const isSuspended = lasting.some(({ reason }) => reason === "suspended");
  for (const { reason, message, clear, until, blocker } of isSuspended ? [] : lasting)
    expect(clear.length > 0 || (until ?? blocker) !== undefined, `nothing ends ${reason}: ${message}`).toBe(true);
}
