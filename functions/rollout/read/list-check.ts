import { fleetVersionKeys, fleetVersionOf } from "#functions/rollout/read/fleet.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import type { Known } from "#shared/fleet/rollout/facts.ts";
import type { Table } from "#shared/ports.ts";

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
