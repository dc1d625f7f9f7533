/** Decides which rollout a stage takes next. */
import type { Advance } from "#shared/fleet/rollout/advance.ts";
import { deletionFor, type MayStart, nextFor } from "#shared/fleet/rollout/order.ts";
import { stageRunKey } from "#shared/fleet/rollout/stage-runs.ts";
import type { RolloutStateRow, StageRecord } from "#shared/fleet/rows/rollout-rows.ts";

export interface Feed {
  /** Index of the stage; undefined when the rollout gets a number only: a hold keeps it back, or it is rejected. */
  readonly stage?: number;
  /** Number of the rollout, or `newest` for the desired one that has no number yet. */
  readonly rollout: number | "newest";
}

export interface Feeding {
  /** By `stageRunKey`, what `advance` says of each stage run in progress. */
  readonly runs: ReadonlyMap<string, Pick<Advance, "acceptsNewer" | "inFlight">>;
  /** Something is desired that no stage has taken: the first stage may take it. */
  readonly isNew: boolean;
  readonly supersede: "pipeline" | "finish";
  /** The desired state is a deletion: it replaces everything. */
  readonly deletion: boolean;
  /** True when the desired plan is that of a rejected rollout: it gets a number only. */
  readonly isNewRejected?: boolean;
  /** Present under a hold. */
  readonly mayStart?: MayStart;
}

/**
 * Finds the first stage that takes a rollout. An idle stage takes the newest rollout that the stage before has passed,
 * and the first stage the newest desired one. A stage keeps its stage run until that passes, or accepts a newer one.
 */
export function nextFeed(
  rolloutState: RolloutStateRow,
  { runs, isNew, isNewRejected, supersede, deletion, mayStart }: Feeding,
): Feed | undefined {
  // No cluster could verify anything: clusters that are registered later take it through the stages.
  if (rolloutState.stages.every(({ members }) => members === 0) && !deletion) return undefined;
  if (isNew && !deletion && (mayStart !== undefined || isNewRejected === true)) return { rollout: "newest" };
  const runOf = ({ updatingTo }: StageRecord) => updatingTo && runs.get(stageRunKey(updatingTo));
  // A stage whose stage run is lost starts it again.
  const stages = rolloutState.stages.map((stage) => (runOf(stage) === undefined ? withoutRun(stage) : stage));
  const state = { ...rolloutState, stages };
  const isInFlight = stages.some(
    (stage, index) => runOf(stage)?.inFlight === true || (index > 0 && nextFor(state, index, mayStart) !== undefined),
  );
  for (const [index, stage] of stages.entries()) {
    const isFree = deletion || runOf(stage)?.acceptsNewer !== false;
    if (index === 0 && isNew) {
      const waits = supersede === "finish" && !deletion && isInFlight;
      if (isFree && !waits) return { stage: index, rollout: "newest" };
      continue;
    }
    if (deletion && isNew) continue;
    // The first stage is behind although nothing new is desired: a removed stage had taken the newest.
    const rollout = deletion ? deletionFor(state, index) : nextFor(state, index, mayStart);
    if (rollout !== undefined && isFree) return { stage: index, rollout };
  }
  return undefined;
}

function withoutRun({ updatingTo: _lost, ...stage }: StageRecord): StageRecord {
  return stage;
}
