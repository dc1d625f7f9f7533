/** Cordons and uncordons a Cluster: the planner assigns nothing new to a cordoned one. */

import type { ApiPorts, Caller } from "#functions/api/request/api-ports.ts";
import { refusal } from "#functions/api/request/refusal.ts";
import { type ObjectChange, operationsChange, unchanged, type WrittenRow } from "#functions/api/write/object-change.ts";
import { requireLater } from "#functions/api/write/require-later.ts";
import { sendSideBySide, writeObject } from "#functions/api/write/write-object.ts";
import { ownersTaking } from "#shared/adapters/concerned-owners.ts";
import { defined } from "#shared/base/defined.ts";
import { fleetRow } from "#shared/fleet/rows/cluster-entry.ts";
import { cordonsAmong, cordonUpdate, isCordoning } from "#shared/fleet/rows/cordons-row.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { type ClusterRow, type Cordoning, nextAct } from "#shared/fleet/rows/object-rows.ts";

/** Number of cordons at once: the planner reads all of them in each call. */
const maxCordons = 50;

export interface CordonAnswer {
  readonly outcome: "configured" | "unchanged";
  /** The cordon in force; absent after an `uncordon`. */
  readonly cordoned?: Cordoning;
}

/**
 * The first person who cordoned stays recorded, whoever changes the end.
 * @throws StarlingError `NotFound`, `BadRequest`, `Conflict` when as many clusters are cordoned as may be.
 */
export async function cordonCluster(
  ports: ApiPorts,
  request: { readonly name: string; readonly until: string | undefined; readonly caller: Caller & { reason: string } },
): Promise<CordonAnswer> {
  const { name, until, caller } = request;
  const now = ports.clock.now();
  requireLater(until, now, "to cordon until an uncordon");
  const cordons = cordonsAmong(await ports.table.getMany([keys.cordonState]));
  const others = cordons.filter(({ cluster }) => cluster !== name);
  const inForce = others.filter((one) => isCordoning(one, now));
  const over = others.filter((one) => !isCordoning(one, now)).map(({ cluster }) => cluster);
  return changeCordon(ports, { name, verb: "cordon", caller }, (row) => {
    const { cordoned, uncordoned: _past, ...operations } = row.operations;
    const before = cordoned !== undefined && isCordoning(cordoned, now) ? cordoned : undefined;
    if (before !== undefined && before.until === until) return unchanged(row);
    if (before === undefined && inForce.length >= maxCordons) {
      const names = inForce.map(({ cluster }) => cluster).join(", ");
      const remedy = "uncordon one, or freeze clusters by their labels";
      throw refusal("Conflict", `${maxCordons} clusters are cordoned, which is the most; ${remedy}: ${names}`);
    }
    const number = nextAct(row.operations);
    const { until: _end, ...first } = before ?? {
      by: caller.principal,
      at: now.toISOString(),
      reason: caller.reason,
      number,
    };
    const next: Cordoning = { ...first, number, ...defined({ until }) };
    const change = operationsChange(row, { ...operations, cordoned: next }, now);
    return { ...change, writes: [...change.writes, cordonUpdate(name, next, over)] };
  });
}

/** The cluster gets what it waits for in its turn. @throws StarlingError `NotFound` */
export async function uncordonCluster(
  ports: ApiPorts,
  { name, caller }: { readonly name: string; readonly caller: Caller },
): Promise<CordonAnswer> {
  const now = ports.clock.now();
  return changeCordon(ports, { name, verb: "uncordon", caller }, (row) => {
    const { cordoned, ...operations } = row.operations;
    if (cordoned === undefined) return unchanged(row);
    const act = { by: caller.principal, at: now.toISOString(), ...defined({ reason: caller.reason }) };
    const uncordoned = { ...act, number: nextAct(row.operations) };
    const change = operationsChange(row, { ...operations, uncordoned }, now);
    return { ...change, writes: [...change.writes, cordonUpdate(name, undefined)] };
  });
}

async function changeCordon(
  ports: ApiPorts,
  { name, verb, caller }: { readonly name: string; readonly verb: string; readonly caller: Caller },
  decide: (row: ClusterRow) => ObjectChange,
): Promise<CordonAnswer> {
  const { outcome, after } = await writeObject(ports, {
    reference: { kind: "Cluster", name },
    verb,
    caller,
    decide: (before) => decide(existing(before, name)),
  });
  if (outcome !== "unchanged") {
    // The message names the cluster, so that the planner checks its slot.
    const entry = fleetRow(existing(after, name));
    await sendSideBySide(ports, await ownersTaking([entry], ports.table, [name]));
  }
  const { cordoned } = after.operations;
  return { outcome: outcome === "unchanged" ? "unchanged" : "configured", ...defined({ cordoned }) };
}

function existing(row: WrittenRow | undefined, name: string): ClusterRow {
  if (row?.type !== "Cluster") throw refusal("NotFound", `Cluster ${name} does not exist`);
  return row;
}
