import { expect } from "vitest";
import { digestOf } from "#shared/base/digest.ts";
import { inputOf, relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import { isSameStageRun } from "#shared/fleet/rollout/stage-runs.ts";
import type { FleetRow, OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import type { RolloutRow, RolloutStateRow, StageRunRow, TargetRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { Row } from "#shared/fleet/rows/row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Change } from "#test/support/planner-model/stage-watch.ts";

interface Watched {
  readonly group: OwnerRow | undefined;
  rowsOf<R extends Row>(type: R["type"]): R[];
  /** An id of the stage that stays when its name changes. */
  idOf(stage: string): string;
}

/** A rollback that nobody asked for. */
interface TakeBack {
  readonly failed: number;
  /** Id of the stage. */
  readonly stage: string;
  /** The rollout that the stage had. */
  readonly older: RolloutRow | undefined;
}

/** The rollbacks that `onFailure: rollback` starts: one for each rollout that fails, for its stage only. */
export class TakeBackWatch {
  readonly #takenBack = new Map<number, TakeBack>();
  #wasAskedFor = false;

  written(changes: readonly Change[], watched: Watched): void {
    for (const { before, after } of changes) {
      if (after?.type === "SyncGroup")
        this.#wasAskedFor ||= relationOf(after as OwnerRow).rollout.onFailure === "rollback";
      if (before !== undefined || after?.type !== "Rollout" || !("takesBack" in after)) continue;
      const state = changes.find((change) => change.after?.type === "RolloutState")?.before;
      this.#check(after as RolloutRow, state as RolloutStateRow | undefined, watched);
    }
  }

  #check(
    { number, rollback, takesBack, plan }: RolloutRow,
    state: RolloutStateRow | undefined,
    { rowsOf, idOf }: Watched,
  ): void {
    if (takesBack === undefined) return;
    const { rollout: failed, stage } = takesBack;
    const what = `rollout ${number} takes ${failed} back from ${stage}`;
    expect(this.#wasAskedFor, `${what}: onFailure says so`).toBe(true);
    expect(this.#takenBack.has(failed), `${what}: which takes another one back`).toBe(false);
    const others = [...this.#takenBack.values()].map((one) => one.failed);
    expect(others, `${what}: for the second time`).not.toContain(failed);
    const rollouts = rowsOf<RolloutRow>("Rollout");
    expect(rollouts.find((one) => one.number === failed)?.trigger, `${what}: a rollback`).not.toBe("rollback");
    const older = rollouts.find((one) => one.number === rollback);
    expect(older?.plan.planHash, `${what}: the plan of ${rollback}`).toBe(plan.planHash);
    const { current, unasked } = state?.stages.find(({ name }) => name === stage) ?? {};
    const isKept = state?.rejected?.some((one) => one.rollout === current) !== true && unasked !== true;
    if (isKept) {
      const had = rollouts.find((one) => one.number === current);
      expect([current, had?.rollback], `${what}: what the stage had`).toContain(rollback);
    }
    const run = rowsOf<StageRunRow>("StageRun").findLast((one) => one.rollout === failed && one.stage === stage);
    const withheld = new Set(
      rowsOf<SyncRow>("SyncOnCluster").flatMap(({ cluster, observed }) => (observed?.guardedPrune ? [cluster] : [])),
    );
    const targets = rowsOf<TargetRow>("Target").filter((one) => isSameStageRun(one.stageRun, run));
    const failures = targets.filter(({ state, cluster }) => state === "Failed" && !withheld.has(cluster));
    const isBad = failures.length > 0 || run?.bake !== undefined || run?.check !== undefined;
    expect(isBad, `${what}: where nothing failed but prunes that a guard withholds`).toBe(true);
    this.#takenBack.set(number, { failed, stage: idOf(stage), older });
  }

  /** @param stageRun - what the assignment belongs to; absent for a catch-up. */
  assigned(what: string, { cluster, desired }: SyncRow, stageRun: StageRunRow | undefined, watched: Watched): void {
    const takeBack = this.#takenBack.get(desired.rollout);
    if (takeBack === undefined) return;
    if (stageRun !== undefined)
      expect(watched.idOf(stageRun.stage), `${what}: another stage goes back`).toBe(takeBack.stage);
    const fleet = watched.rowsOf<FleetRow>("Fleet").find(({ name }) => name === cluster);
    if (desired.action === "apply" && takeBack.older !== undefined && fleet !== undefined)
      expect(renderings(takeBack.older, fleet), `${what}: what its stage had`).toContain(desired.renderDigest);
  }
}

/** The renderings that a rollout may give to a cluster, whatever labels the planner has read. */
function renderings({ plan }: RolloutRow, fleet: FleetRow): readonly string[] {
  const labels = ["r0", "r1", "r2"].flatMap((ring) => ["mild", "sharp"].map((flavour) => ({ ring, flavour })));
  return plan.templates.flatMap((template) =>
    labels.flatMap((some) => {
      const input = inputOf(template, { ...fleet, labels: { ...fleet.labels, ...some } });
      return "path" in input ? digestOf(`${input.artifactDigest}${input.path}`) : [];
    }),
  );
}
