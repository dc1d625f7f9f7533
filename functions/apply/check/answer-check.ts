import type { CheckedWay } from "#functions/apply/check/checked-way.ts";
import { followLinks } from "#functions/apply/check/follow-links.ts";
import { isElsewhere } from "#functions/apply/cluster/is-elsewhere.ts";
import { readRow } from "#shared/adapters/read-row.ts";
import { isConflict } from "#shared/base/errors.ts";
import type { LinkFinding } from "#shared/fleet/cluster-links.ts";
import type { CheckRow } from "#shared/fleet/rows/check-row.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { ClusterRow } from "#shared/fleet/rows/object-rows.ts";
import { isNewer, type NewerRow } from "#shared/fleet/rows/row.ts";
import type { Table } from "#shared/ports.ts";

export interface CheckPorts {
  readonly table: Table;
  /** Remembers nothing from before: remembered roles and addresses would prove nothing. */
  readonly newWay: () => CheckedWay;
}

/**
 * Checks the way to a cluster once for everybody who asked, and records the result. It needs no lease, because it
 * changes nothing in the cluster.
 */
export async function answerCheck(cluster: string, { table, newWay }: CheckPorts): Promise<void> {
  const check = await table.get(keys.check(cluster));
  if (check === undefined || check.answer?.id === check.asked.id) return;
  const way = newWay();
  const row = await readRow(table, keys.cluster(cluster));
  // The cluster moved after the request: the next request goes to the workers of its new zone.
  if (row !== undefined && !isNewer(row) && isElsewhere(row, way.zone)) return;
  const links = await linksOf(cluster, row, way);
  const answer = { id: check.asked.id, at: way.clock.now().toISOString(), links };
  const answered: CheckRow = { ...check, version: check.version + 1, answer };
  try {
    await table.write([{ put: answered, when: { version: check.version } }]);
  } catch (error) {
    // A newer request has its own message.
    if (!isConflict(error)) throw error;
  }
}

async function linksOf(
  cluster: string,
  row: ClusterRow | NewerRow | undefined,
  way: CheckedWay,
): Promise<readonly LinkFinding[]> {
  if (row !== undefined && !isNewer(row)) return followLinks(row, way);
  const [code, message, remedy] =
    row === undefined
      ? ["NotFound", `there is no Cluster ${cluster} any more`, "starling get clusters"]
      : ["NewerRow", `Cluster ${cluster} was written by a newer version`, "update the stack to that version"];
  return [{ link: "cluster", state: "broken", value: cluster, code, message, remedy }];
}
