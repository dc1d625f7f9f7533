import type { ApiPorts, Caller } from "#functions/api/request/api-ports.ts";
import { refusal } from "#functions/api/request/refusal.ts";
import { type ObjectChange, operationsChange, unchanged, type WrittenRow } from "#functions/api/write/object-change.ts";
import { sendAfter, writeObject } from "#functions/api/write/write-object.ts";
import { forgetSyncs, isAssigned, requireForgettable, syncsOn } from "#shared/adapters/forget-syncs.ts";
import { defined } from "#shared/base/defined.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { type ClusterRow, clusterIdentity, nextAct } from "#shared/fleet/rows/object-rows.ts";

export interface AcceptRequest {
  readonly name: string;
  /** Uid of the cluster that the caller has seen: yet another cluster may answer by the time this is written. */
  readonly uid: string;
  readonly confirmed: "confirmed" | "ask";
  readonly caller: Caller;
}

export interface AcceptAnswer {
  readonly outcome: "configured" | "unchanged";
  readonly uid: string;
}

/**
 * Accepts the cluster that answers now, with this uid, as the expected one. Its Syncs begin again, as after a
 * registration: the planner forgets and assigns them, and nothing that is recorded of the cluster before is deleted
 * here. Only a uid that a worker has seen there can be accepted. A repetition finishes what broke off.
 * @throws StarlingError `NotFound`, `IdentityChanged`, `NewerRow`, `ConfirmationRequired` with what begins again.
 */
export async function acceptCluster(ports: ApiPorts, request: AcceptRequest): Promise<AcceptAnswer> {
  const { name, uid, caller } = request;
  if (request.confirmed === "ask") await ask(ports, request);
  await requireForgettable(ports.table, name);
  const now = ports.clock.now();
  const write = (decide: (row: ClusterRow) => ObjectChange) =>
    writeObject(ports, {
      reference: { kind: "Cluster", name },
      verb: `accept (uid=${uid})`,
      caller,
      decide: (before) => decide(acceptable(before, request)),
    });
  const said = await write((row) => {
    if (clusterIdentity(row) === uid) return unchanged(row);
    const reason = caller.reason === undefined ? {} : { reason: caller.reason };
    const number = nextAct(row.operations);
    const accepted = { by: caller.principal, at: now.toISOString(), ...reason, number, uid };
    return operationsChange(row, { ...row.operations, accepted }, now);
  });
  const { accepted } = said.after.operations;
  if (accepted?.uid !== uid || accepted.forgotten === true) return { outcome: "unchanged", uid };
  // The acceptance comes last: a planner that planned before would take recorded objects for existing ones.
  await forgetSyncs(ports, name, "accept it once more");
  const done = await write((row) => {
    const { accepted: mine } = row.operations;
    if (mine?.uid !== uid) return unchanged(row);
    return operationsChange(row, { ...row.operations, accepted: { ...mine, forgotten: true } }, now);
  });
  await sendAfter(ports, [{ ...done, clusters: [done.after] }]);
  return { outcome: "configured", uid };
}

/** What would begin again. */
async function ask(ports: ApiPorts, request: AcceptRequest): Promise<void> {
  const { name, uid } = request;
  const row = acceptable(await ports.table.get(keys.cluster(name)), request);
  if (clusterIdentity(row) === uid) return;
  const syncs = (await syncsOn(ports.table, name)).filter(isAssigned).length;
  const message = `accepting the cluster of uid ${uid} as Cluster ${name}, which had ${clusterIdentity(row) ?? "none"}: ${syncs} ${syncs === 1 ? "Sync begins" : "Syncs begin"} anew there; nothing is deleted`;
  throw refusal("ConfirmationRequired", message, { consequences: [{ message, syncs, clusters: 1 }] });
}

function acceptable(before: WrittenRow | undefined, { name, uid }: AcceptRequest): ClusterRow {
  if (before?.type !== "Cluster") throw refusal("NotFound", `Cluster ${name} does not exist`);
  const identity = clusterIdentity(before);
  const { mismatch } = before.status;
  if (identity === uid || mismatch === uid) return before;
  const seen =
    mismatch === undefined
      ? `no other cluster than the one of uid ${identity ?? "(not seen yet)"} has answered as Cluster ${name}`
      : `the cluster that answers as Cluster ${name} has the uid ${mismatch}`;
  throw refusal("IdentityChanged", `${seen}, not ${uid}; look at it again, and accept what you have seen`, {
    ...defined({ seen: mismatch }),
  });
}
