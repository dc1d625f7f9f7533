import type { ApiPorts, Caller } from "#functions/api/request/api-ports.ts";
import { refusal } from "#functions/api/request/refusal.ts";
import { readRow } from "#shared/adapters/read-row.ts";
import { defined } from "#shared/base/defined.ts";
import { isConflict } from "#shared/base/errors.ts";
import type { ClusterCheck } from "#shared/fleet/cluster-links.ts";
import type { CheckRow } from "#shared/fleet/rows/check-row.ts";
import { zoneOf } from "#shared/fleet/rows/cluster-entry.ts";
import { expiryOf } from "#shared/fleet/rows/expiry.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { isNewer, rowSchema } from "#shared/fleet/rows/row.ts";

/** Callers within this time wait for the same answer; after that the message may be lost, and another one is sent. */
const patienceMs = 20_000;
/** Seconds for which an answer counts, because it describes one moment. */
const keptSeconds = 86_400;
const maxTries = 5;

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
  const { table, clock, ids, sender } = ports;
  const asked = await readRow(table, keys.cluster(cluster));
  if (asked === undefined) throw noSuchCluster(cluster);
  const place = isNewer(asked) ? {} : { zone: zoneOf(asked) };
  for (let attempt = 1; attempt <= maxTries; attempt++) {
    const before = await table.get(keys.check(cluster));
    const now = clock.now();
    const waits = before !== undefined && before.answer?.id !== before.asked.id;
    if (waits && Date.parse(before.asked.at) + patienceMs > now.getTime()) return { id: before.asked.id, ...place };
    const row: CheckRow = {
      ...keys.check(cluster),
      type: "Check",
      schema: rowSchema,
      version: (before?.version ?? 0) + 1,
      asked: { id: ids.unique(), at: now.toISOString(), by: caller.principal },
      ...defined({ answer: before?.answer }),
      expiresAt: expiryOf(now, keptSeconds),
    };
    try {
      await table.write([{ put: row, when: before === undefined ? "absent" : { version: before.version } }]);
    } catch (error) {
      if (isConflict(error)) continue;
      throw error;
    }
    await sender.send([{ to: "apply", cluster, check: true }]);
    return { id: row.asked.id, ...place };
  }
  throw refusal("Conflict", `many ask for a check of Cluster ${cluster} at once; try again`);
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
