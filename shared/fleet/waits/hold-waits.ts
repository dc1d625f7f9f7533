/**
 * The waits of clusters that a cause other than a cordon or a freeze holds back: targets of stage runs, and catch-ups.
 * Pure.
 */
import { defined } from "#shared/base/defined.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import { changingIn, ownBound } from "#shared/fleet/rollout/slots.ts";
import type { Hold } from "#shared/fleet/rows/rollout-rows.ts";
import { closedNames, windowsNamed } from "#shared/fleet/rows/windows-row.ts";
import { type Wait, type WaitFacts, waitingText } from "#shared/fleet/waits/wait.ts";
import { closedSince, nextOpening } from "#shared/fleet/windows/calendar.ts";
import { openingText } from "#shared/fleet/windows/opening-text.ts";

/** Catch-ups say what they wait to do; the targets of a stage run are named with it. */
export const catchingUpText = " to catch up";

/** @param opens - when changes may start again; undefined is never. */
function windowText(names: string, opens: string | undefined): string {
  const [what, open] = names.includes(", ") ? ["windows", "open"] : ["window", "opens"];
  return opens === undefined
    ? `for ${what} ${names}, which never ${open} again`
    : `until ${what} ${names} ${open} ${opens}`;
}

/**
 * @param where - the stage run of the targets, and its start; for catch-ups, nothing. @returns none for a cordon or a freeze: see
 * `waits.ts`.
 */
export function holdWaits(
  { cause, name, clusters: count }: Hold<number>,
  where: Pick<Wait, "stage" | "rollout" | "since">,
  { rolloutState, row, windows, now }: Pick<WaitFacts, "rolloutState" | "row" | "windows" | "now">,
): readonly Wait[] {
  if (count === 0) return [];
  const who = `${waitingText(count)}${where.stage === undefined ? catchingUpText : ""}`;
  const join = where.stage === undefined ? ", " : " ";
  const clusters = { count, names: [] };
  switch (cause) {
    case "cordon":
    case "freeze":
      return [];
    case "window": {
      const calendar = windowsNamed(windows, name ?? "");
      const opening = nextOpening(calendar, now);
      const blocker = closedNames(windows, name ?? "", now);
      const message = `${who}${join}${windowText(blocker, opening === undefined ? undefined : openingText(calendar, opening))}`;
      const until = opening?.toISOString();
      const since = closedSince(calendar, where.since, now)?.toISOString();
      return [
        {
          reason: "window",
          ...where,
          clusters,
          ...defined({ blocker, since, until }),
          message,
          clear: [{ verb: "exempt" }],
        },
      ];
    }
    case "rendering":
      return [{ reason: "rendering", ...where, clusters, message: `${who}${join}for renderings`, clear: [] }];
    case "worker": {
      const message = `${who}${join}until an earlier attempt has ended`;
      return [{ reason: "worker", ...where, clusters, message, clear: [] }];
    }
    case "bound": {
      const stage = rolloutState.stages.find((one) => one.name === name);
      const { maxConcurrent } = relationOf(row).rollout.stages.find((one) => one.name === name) ?? {};
      if (stage === undefined || maxConcurrent === undefined) return [];
      const used = `${changingIn(stage)} of ${ownBound(maxConcurrent, stage.members)} slots of ${stage.name} are in use`;
      const clear = [{ verb: "pace", field: "maxConcurrent" }] as const;
      return [{ reason: "slots", stage: stage.name, clusters, message: `${who}: ${used}`, clear }];
    }
    default:
      cause satisfies never;
      return [];
  }
}
