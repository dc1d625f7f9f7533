import type { ApiPorts, Caller } from "#functions/api/request/api-ports.ts";
import { refusal } from "#functions/api/request/refusal.ts";
import { askOnce } from "#functions/api/write/ask-once.ts";
import { readRow } from "#shared/adapters/read-row.ts";
import { defined } from "#shared/base/defined.ts";
import type { ClusterCheck } from "#shared/fleet/cluster-links.ts";
import type { CheckRow } from "#shared/fleet/rows/check-row.ts";
import { zoneOf } from "#shared/fleet/rows/cluster-entry.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";

export interface CheckAsked {
  /** Id that the answer will have. */
  readonly id: string;
  /** The zone whose workers check. Absent for a Cluster that only a newer version can read. */
  readonly zone?: string;
}

/**
 * Asks the apply function to check the way to the cluster, because only that function has its role, network and
 * secrets.
 * @throws StarlingError `NotFound`
 */
export async function askCheck(ports: ApiPorts, cluster: string, caller: Caller): Promise<CheckAsked> {
  const asked = await readRow(ports.table, keys.cluster(cluster));
  if (asked === undefined) throw noSuchCluster(cluster);
  const id = await askOnce<CheckRow>(ports, {
    key: keys.check(cluster),
    type: "Check",
    about: `Cluster ${cluster}`,
    asked: { by: caller.principal },
    message: { to: "apply", cluster, check: true },
  });
  return { id, ...(isNewer(asked) ? {} : { zone: zoneOf(asked) }) };
}

export interface CheckAnswer {
  readonly asked?: CheckRow["asked"];
  readonly answer?: ClusterCheck;
}

/** The newest request and result. @throws StarlingError `NotFound` */
export async function readCheck({ table }: ApiPorts, cluster: string): Promise<CheckAnswer> {
  const row = await readRow(table, keys.check(cluster));
  if (row === undefined || isNewer(row)) {
    if ((await readRow(table, keys.cluster(cluster))) === undefined) throw noSuchCluster(cluster);
    return {};
  }
  return { asked: row.asked, ...defined({ answer: row.answer }) };
}

function noSuchCluster(cluster: string) {
  return refusal("NotFound", `Cluster ${cluster} does not exist`);
}
