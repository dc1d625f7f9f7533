import { fleetVersionKeys, fleetVersionOf } from "#functions/rollout/fleet.ts";
import type { Known } from "#functions/rollout/read-owner.ts";
import { selects } from "#shared/fleet/kinds/cluster-selection.ts";
import { relationOf, stageOf } from "#shared/fleet/rollout/desired-plan.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";
import type { StageRecord } from "#shared/fleet/rows/rollout-rows.ts";
import type { Table } from "#shared/ports.ts";

export function isSelected({ row }: Pick<Known, "row">, fleet: FleetRow | undefined): fleet is FleetRow {
  return fleet !== undefined && selects(relationOf(row).clusters, fleet);
}

/**
 * The stage of a cluster by its present labels; undefined when it is not selected, or the rollout state has no such
 * stage yet.
 */
export function stageNow(
  { row, rolloutState }: Pick<Known, "row" | "rolloutState">,
  fleet: FleetRow | undefined,
): StageRecord | undefined {
  if (!isSelected({ row }, fleet)) return undefined;
  const own = stageOf(relationOf(row).rollout, fleet);
  return rolloutState.stages.find(({ name }) => name === own);
}

/**
 * Whether the list of members fits the present fleet; asked once, after the clusters were read. A cluster that is not
 * where the list has it may return before another list is made, which would not show that: it waits until one is made.
 */
export function listCheck({ row, fleetVersion }: Pick<Known, "row" | "fleetVersion">, table: Table) {
  let answer: Promise<boolean> | undefined;
  const ask = async () => {
    const { clusters } = relationOf(row);
    const rows = await table.getMany(fleetVersionKeys(clusters), { newer: "kept" });
    return fleetVersionOf(clusters, rows) === fleetVersion;
  };
  return (): Promise<boolean> => {
    answer ??= ask();
    return answer;
  };
}
