import { expect } from "vitest";
import { digestOf } from "#shared/base/digest.ts";
import { isDisabledFor } from "#shared/fleet/rollout/cluster-inputs.ts";
import { inputOf, relationOf, stageOf } from "#shared/fleet/rollout/desired-plan.ts";
import { syncName } from "#shared/fleet/rows/keys.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";
import type { CatchUpRow, RolloutRow, TargetRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { PlannerModel } from "#test/support/planner-model/planner-model.ts";
import { owner } from "#test/support/planner-world.ts";

/**
 * When the model is idle and every stage runs the newest rollout, each cluster has that rollout, rendered from its present
 * values, and nothing that the spec does not have for it. Clusters that are reported as left out are excepted.
 */
export function expectOwnRollout(model: PlannerModel): void {
  const { watch } = model;
  const [rolloutState, group] = [watch.rolloutState(), watch.group()];
  if (rolloutState === undefined || group === undefined || group.operations.deletion !== undefined) return;
  if (rolloutState.stages.some(({ current, updatingTo }) => updatingTo !== undefined || current !== rolloutState.last))
    return;
  const rollout = watch.rowsOf<RolloutRow>("Rollout").find(({ number }) => number === rolloutState.last);
  if (rollout === undefined) throw new Error("the newest rollout is missing");
  const behind = new Set(watch.rowsOf<CatchUpRow>("CatchUp").map(({ cluster }) => cluster));
  for (const { cluster, state, stageRun, takenOut } of watch.rowsOf<TargetRow>("Target"))
    if (stageRun.rollout === rolloutState.last && (state === "Failed" || state === "Unreachable" || takenOut === true))
      behind.add(cluster);
  const { rollout: settings, templates } = relationOf(group);
  const syncs = watch.rowsOf<SyncRow>("SyncOnCluster");
  for (const fleet of watch.rowsOf<FleetRow>("Fleet")) {
    if (fleet.labels.fleet !== "web" || behind.has(fleet.name)) continue;
    const own = syncs.filter(({ cluster, desired }) => cluster === fleet.name && desired.action === "apply");
    const has = Object.fromEntries(own.map(({ name, desired }) => [name, desired.renderDigest]));
    const desired = templates.filter((template) => !isDisabledFor(template, fleet));
    const given = rollout.plan.templates.filter(({ name }) => desired.some((template) => template.name === name));
    const digests = given.map((template) => {
      const input = inputOf(template, fleet);
      const digest = "path" in input ? digestOf(`${input.artifactDigest}${input.path}`) : undefined;
      return [syncName(owner, template.name), digest];
    });
    expect(has, `what ${fleet.name} was given in ${stageOf(settings, fleet)}`).toEqual(Object.fromEntries(digests));
  }
}
