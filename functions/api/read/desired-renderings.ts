import { readClusterValues } from "#shared/adapters/read-cluster-values.ts";
import { effectiveValues } from "#shared/fleet/effective-values.ts";
import { overridden } from "#shared/fleet/rollout/cluster-inputs.ts";
import { inputDigest, inputOf, relationOf, stageOf } from "#shared/fleet/rollout/desired-plan.ts";
import { isAsNewAs } from "#shared/fleet/rollout/order.ts";
import { stageRunKey, stageRunOf } from "#shared/fleet/rollout/stage-runs.ts";
import { keys, type Owner, syncName } from "#shared/fleet/rows/keys.ts";
import type { OwnerRow, OwnerState } from "#shared/fleet/rows/object-rows.ts";
import type { RenderingRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer, keyText, type RowKeyOf } from "#shared/fleet/rows/row.ts";
import type { RowType } from "#shared/fleet/rows/stored-row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { type DesiredRendering, isReady, type OutOfSync, outOfSync } from "#shared/fleet/sync/sync-state.ts";
import type { Table } from "#shared/ports.ts";

/** Every cluster has what is desired, or nothing is desired. */
const nothingDesired: ReadonlySet<OwnerState> = new Set(["Complete", "Drifted", "Deleting"]);

/**
 * Finds the Syncs that are ready with another rendering than their cluster desires: that of the rollout that the stage
 * updates to, or of its current one. It reads only where not everything is complete.
 * @param owners - by `keyText` of their rows.
 */
export async function findOutOfSync(
  table: Table,
  syncs: readonly SyncRow[],
  owners: ReadonlyMap<string, OwnerRow>,
): Promise<ReadonlyMap<string, OutOfSync>> {
  const asked = syncs.flatMap((sync) => {
    const owner = owners.get(keyText(ownerRowKey(sync.owner)));
    const state = owner?.status.state;
    if (owner?.status.rollout === undefined || (state !== undefined && nothingDesired.has(state))) return [];
    return isReady(sync) ? [{ sync, owner }] : [];
  });
  if (asked.length === 0) return new Map();
  const first = await readDistinct(
    table,
    asked.flatMap(({ sync }) => [keys.rolloutState(sync.owner), keys.fleet(sync.cluster)]),
  );
  const staged = asked.flatMap(({ sync, owner }) => {
    const rolloutState = first.get(keyText(keys.rolloutState(sync.owner)));
    const cluster = first.get(keyText(keys.fleet(sync.cluster)));
    if (rolloutState?.type !== "RolloutState" || cluster?.type !== "Fleet") return [];
    const name = stageOf(relationOf(owner).rollout, cluster);
    const stage = rolloutState.stages.find((one) => one.name === name);
    const number = stage?.updatingTo?.rollout ?? stage?.current;
    // A cluster that joined a stage which is behind keeps what it has until the stage catches up.
    if (stage === undefined || number === undefined || isAsNewAs(sync, number)) return [];
    return [{ sync, cluster, stage, rollout: keys.rollout(sync.owner, number) }];
  });
  const values = staged.length === 0 ? [] : await readClusterValues(table);
  const second = await readDistinct(table, [
    ...staged.map(({ rollout }) => rollout),
    ...staged.map(({ sync }) => catchUpKey(sync)),
    ...staged.flatMap(({ sync, stage: { updatingTo } }) =>
      updatingTo === undefined ? [] : [keys.stageRun(sync.owner, updatingTo)],
    ),
  ]);
  const stageRuns = new Map(
    [...second.values()].filter((row) => row.type === "StageRun").map((stageRun) => [stageRunKey(stageRun), stageRun]),
  );
  const planned = staged.flatMap(({ sync, cluster, stage, rollout: key }) => {
    const rollout = second.get(keyText(key));
    if (rollout?.type !== "Rollout") return [];
    const template = rollout.plan.templates.find(({ name }) => syncName(sync.owner, name) === sync.name);
    if (template === undefined) return [];
    const catchesUp = second.has(keyText(catchUpKey(sync)));
    const place: DesiredRendering["place"] = stageRunOf(stage, stageRuns)?.phase ?? (catchesUp ? "catchUp" : undefined);
    const input = inputOf(template, { ...cluster, values: effectiveValues(cluster, values) });
    // The cluster keeps what it has when its turn comes.
    if ("disabled" in input) return [];
    const special = "problem" in input ? template : overridden(template, input.overrides);
    return [{ sync, rollout, place, template: special, input }];
  });
  const renderings = await readDistinct(
    table,
    planned.flatMap(({ input }) => ("problem" in input ? [] : [keys.rendering(inputDigest(input))])),
  );
  const found = new Map<string, OutOfSync>();
  for (const { sync, rollout, place, template, input } of planned) {
    const rendering =
      "problem" in input
        ? { problem: input.problem }
        : partsOf(renderings.get(keyText(keys.rendering(inputDigest(input)))));
    const { revision, apply } = template;
    const behind = outOfSync(sync, { revision, apply, rollout: rollout.number, place, ...rendering });
    if (behind !== undefined) found.set(keyText(sync), behind);
  }
  return found;
}

function catchUpKey({ owner, cluster }: SyncRow) {
  return keys.catchUp(owner, "waiting", cluster);
}

function partsOf(row: RenderingRow | undefined): Pick<DesiredRendering, "renderDigest" | "problem"> {
  if (row?.state === "Failed") return { problem: row.failure?.message ?? "no reason given" };
  return row?.state === "Done" && row.digest !== undefined ? { renderDigest: row.digest } : {};
}

export async function readDistinct<Type extends RowType>(table: Table, desired: readonly RowKeyOf<Type>[]) {
  const distinct = [...new Map(desired.map((key) => [keyText(key), key])).values()];
  const rows = await table.getMany(distinct, { newer: "kept" });
  return new Map(rows.filter((row) => !isNewer(row)).map((row) => [keyText(row), row]));
}

/** The row of the owner that a Sync on a cluster comes from. */
export function ownerRowKey(owner: Owner): RowKeyOf<Owner["kind"]> {
  return keys.object(owner.namespace, owner.kind, owner.name);
}
