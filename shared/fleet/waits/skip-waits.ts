/** The waits of clusters that people have skipped: they get a turn by a retry, or with a newer rollout. Pure. */
import { takenOutOf } from "#shared/fleet/rollout/stage-runs.ts";
import type { Wait, WaitFacts } from "#shared/fleet/waits/wait.ts";

/** One for each of the first clusters; the last of them says how many there are more. */
export function skipWaits({ row, rolloutState, stageRuns }: WaitFacts): readonly Wait[] {
  if (row.operations.deletion !== undefined) return [];
  return takenOutOf(rolloutState, stageRuns).flatMap(({ rollout, stage, takenOut: { count, first } }) =>
    first.map(({ cluster, reason, at }, index): Wait => {
      const more = index === first.length - 1 && count > first.length ? `; and ${count - first.length} more` : "";
      return {
        reason: "skipped",
        stage,
        rollout,
        clusters: { count: 1, names: [cluster] },
        message: `cluster ${cluster} gets no turn with rollout ${rollout}: ${reason}${more}`,
        since: at,
        clear: [{ verb: "retry", cluster }],
      };
    }),
  );
}
