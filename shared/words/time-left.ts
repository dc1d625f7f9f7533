import type { RolloutOverview } from "#shared/fleet/api/rollout-overview.ts";
import type { WaitReason } from "#shared/fleet/waits/wait.ts";
import { formatSeconds } from "#shared/words/age.ts";

/** Fewer finished clusters are no basis for an estimate. */
const leastDone = 3;
/** Reasons of waits that end at an unknown time. */
const open: ReadonlySet<WaitReason> = new Set([
  "suspended",
  "held",
  "rejected",
  "guard",
  "cordoned",
  "frozen",
  "window",
  "newer",
  "budget",
  "evidence",
  "unreachable",
  "gate",
  "approval",
  "source",
]);

/**
 * `about 4m left in early, by the 12 clusters that are done there`: the estimate assumes the speed of the finished
 * clusters of the stage that the newest rollout goes through. Later stages are not estimated, because their sizes
 * differ. @returns undefined when few clusters are finished, or when something other than clusters is waited for.
 */
export function timeLeft({ status }: RolloutOverview, now: Date): string | undefined {
  const { newest, stages, waits, state } = status;
  if (waits.some(({ reason }) => open.has(reason)) || state === "Suspended") return undefined;
  const stage = stages.find(({ updatingTo }) => updatingTo?.rollout === newest && updatingTo.phase === "Updating");
  if (stage?.updatingTo === undefined) return undefined;
  const { Succeeded, Unchanged, Waiting, Rendering, Assigned } = stage.updatingTo.counts;
  const done = Succeeded + Unchanged;
  const left = Waiting + Rendering + Assigned;
  const seconds = (now.getTime() - Date.parse(stage.updatingTo.startedAt)) / 1000;
  if (left === 0 || done < leastDone || seconds <= 0) return undefined;
  const time = formatSeconds(Math.ceil((left * seconds) / done));
  return `about ${time} left in ${stage.name}, estimated from the ${done.toLocaleString("en")} clusters that are done`;
}
