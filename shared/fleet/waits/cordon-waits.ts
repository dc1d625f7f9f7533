/** The waits of cordoned clusters, each with its name: targets of stage runs, and catch-ups. Pure. */
import { defined } from "#shared/base/defined.ts";
import { stageRunsIn } from "#shared/fleet/rollout/stage-runs.ts";
import { cordonOf, cordonText } from "#shared/fleet/rows/cordons-row.ts";
import type { Hold } from "#shared/fleet/rows/rollout-rows.ts";
import { catchingUpText } from "#shared/fleet/waits/hold-waits.ts";
import type { Wait, WaitFacts } from "#shared/fleet/waits/wait.ts";

/** @param catchUps - the holds of waiting catch-ups. */
export function cordonWaits(
  { cordons, now, rolloutState, stageRuns }: Pick<WaitFacts, "cordons" | "now" | "rolloutState" | "stageRuns">,
  catchUps: readonly Hold<number>[],
): readonly Wait[] {
  const waitOf = ({ cause, name = "" }: Pick<Hold, "cause" | "name">, where: Pick<Wait, "stage" | "rollout">) => {
    const cordon = cause === "cordon" ? cordonOf(cordons, name, now) : undefined;
    // The planner has not seen the end of the cordon yet.
    if (cordon === undefined) return [];
    const what = `cluster ${name} waits${where.stage === undefined ? catchingUpText : ""}`;
    const wait: Wait = {
      reason: "cordoned",
      ...where,
      clusters: { count: 1, names: [name] },
      blocker: cordon.by,
      message: `${what}: ${cordonText(cordon)}`,
      since: cordon.at,
      ...defined({ until: cordon.until }),
      clear: [{ verb: "uncordon", cluster: name }],
    };
    return [wait];
  };
  return [
    ...stageRunsIn(rolloutState, stageRuns).flatMap(({ holds, stage, rollout }) =>
      holds.flatMap((hold) => waitOf(hold, { stage, rollout })),
    ),
    ...catchUps.flatMap((hold) => waitOf(hold, {})),
  ];
}
