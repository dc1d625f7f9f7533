import { expect } from "vitest";
import { isDisabledFor } from "#shared/fleet/rollout/cluster-inputs.ts";
import { relationOf, stageOf } from "#shared/fleet/rollout/desired-plan.ts";
import { stageRunKey } from "#shared/fleet/rollout/stage-runs.ts";
import { syncName } from "#shared/fleet/rows/keys.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";
import type { CatchUpRow, RolloutRow, StageRunRow, TargetRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { syncStateOf } from "#shared/fleet/rows/sync-state-of.ts";
import type { PlannerModel } from "#test/support/planner-model/planner-model.ts";
import { owner } from "#test/support/planner-world.ts";

/** When everything is idle, the counts in a group's status match the states of its clusters. */
export async function expectTrueCounts(model: PlannerModel): Promise<void> {
  // The planner trusts recent observations until an index has caught up.
  model.world.advanceClock(60);
  await model.plan({});
  const group = model.watch.group();
  if (group === undefined || group.operations.deletion !== undefined) return;
  const fleet = model.world.rows<FleetRow>("Fleet").filter(({ labels }) => labels.fleet === "web");
  const { selected = 0, ...counts } = group.status.clusters ?? { ready: 0, failed: 0, unreachable: 0 };
  expect(
    Object.values(counts).reduce((sum, count) => sum + count, 0),
    "the sum of the counts",
  ).toBe(selected);
  expect(selected, "selected clusters").toBe(fleet.length);
  const seen = seenIn(model);
  const { templates, rollout: settings } = relationOf(group);
  const shown = fleet.map((cluster) => {
    // A cluster desires its stage's current rollout, including the overrides of that rollout.
    const { current, updatingTo } =
      model.watch.rolloutState()?.stages.find(({ name }) => name === stageOf(settings, cluster)) ?? {};
    const desired = current ?? updatingTo?.rollout;
    const rollout = model.watch.rowsOf<RolloutRow>("Rollout").find(({ number }) => number === desired);
    const own = templates.filter(({ name }) => {
      const has = rollout?.plan.templates.find((template) => template.name === name);
      return rollout === undefined || (has !== undefined && !isDisabledFor(has, cluster));
    });
    const names = own.filter((template) => !isDisabledFor(template, cluster)).map(({ name }) => name);
    return shownBy(seen, cluster.name, new Set(names.map((name) => syncName(owner, name))));
  });
  const count = (state: string) => shown.filter((one) => one === state).length;
  expect({ failed: counts.failed, unreachable: counts.unreachable }, "failed and unreachable clusters").toEqual({
    failed: count("failed"),
    unreachable: count("unreachable"),
  });
  expect(counts.ready, "ready clusters").toBeLessThanOrEqual(count("ready"));
}

interface Seen {
  /** The Syncs by cluster. */
  readonly syncs: ReadonlyMap<string, readonly SyncRow[]>;
  /** Clusters whose catch-up failed, or that could not be rendered. */
  readonly failed: ReadonlySet<string>;
}

function seenIn(model: PlannerModel): Seen {
  const catchUps = model.watch.rowsOf<CatchUpRow>("CatchUp").filter(({ sk }) => sk.startsWith("CATCHUP#failed#"));
  return {
    syncs: Map.groupBy(model.watch.rowsOf<SyncRow>("SyncOnCluster"), ({ cluster }) => cluster),
    failed: new Set([...catchUps.map(({ cluster }) => cluster), ...unrendered(model)]),
  };
}

/** The worst state of a cluster's Syncs. A failed rendering counts as failed. @param names - of the desired Syncs. */
function shownBy(
  { syncs: all, failed }: Seen,
  cluster: string,
  names: ReadonlySet<string>,
): "ready" | "failed" | "unreachable" | "other" {
  const syncs = all.get(cluster) ?? [];
  const states = syncs.map(syncStateOf);
  if (failed.has(cluster) || states.includes("Failed")) return "failed";
  if (states.includes("Unreachable") || states.includes("Reachable")) return "unreachable";
  const ready = syncs.filter((row) => names.has(row.name) && syncStateOf(row) === "Ready");
  return ready.length === names.size ? "ready" : "other";
}

function unrendered(model: PlannerModel): readonly string[] {
  const current = (model.watch.rolloutState()?.stages ?? []).flatMap(
    ({ updatingTo, passed }) => updatingTo ?? passed ?? [],
  );
  const stageRuns = model.watch
    .rowsOf<StageRunRow>("StageRun")
    .filter((stageRun) => current.some((ref) => stageRunKey(ref) === stageRunKey(stageRun)));
  const orders = new Map(stageRuns.map((stageRun) => [stageRunKey(stageRun), new Set(stageRun.unrendered)]));
  const targets = model.watch.rowsOf<TargetRow>("Target");
  return targets
    .filter(({ stageRun, order }) => orders.get(stageRunKey(stageRun))?.has(order))
    .map(({ cluster }) => cluster);
}
