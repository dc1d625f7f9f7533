import type { ApiPorts, Caller } from "#functions/api/request/api-ports.ts";
import { firstRows } from "#functions/api/request/page-request.ts";
import { type ObjectReference, objectKey, objectText } from "#functions/api/request/reference.ts";
import { refusal } from "#functions/api/request/refusal.ts";
import { registered } from "#functions/api/request/registered.ts";
import { type Consequences, countSyncs, countText } from "#functions/api/write/consequences.ts";
import { operationsChange, repositoryOf, syncOwner, unchanged } from "#functions/api/write/object-change.ts";
import { audit, sendAfter, sendSideBySide, writeObject } from "#functions/api/write/write-object.ts";
import { everyOwner, ownersTaking } from "#shared/adapters/concerned-owners.ts";
import { writeWithFleet } from "#shared/adapters/fleet-writes.ts";
import { forgetSyncs, isAssigned, requireForgettable } from "#shared/adapters/forget-syncs.ts";
import { counted } from "#shared/base/counted.ts";
import { isConflict } from "#shared/base/errors.ts";
import { selects } from "#shared/fleet/kinds/cluster-selection.ts";
import { groupsText } from "#shared/fleet/kinds/group-selection.ts";
import { includedIn } from "#shared/fleet/kinds/source.ts";
import { receiverId } from "#shared/fleet/receiver-id.ts";
import { cordonUpdate } from "#shared/fleet/rows/cordons-row.ts";
import type { DiscoveryRow } from "#shared/fleet/rows/discovery-rows.ts";
import { valuesVersionUpdate } from "#shared/fleet/rows/fleet-version.ts";
import { keys, ranges } from "#shared/fleet/rows/keys.ts";
import {
  type ClusterRow,
  type ClusterValuesRow,
  nextAct,
  type OwnerRow,
  type ReceiverRow,
  type SourceRow,
  type WindowRow,
} from "#shared/fleet/rows/object-rows.ts";
import { clustersOf, windowRemoval } from "#shared/fleet/rows/windows-row.ts";
import type { Write } from "#shared/ports.ts";

/** Number of names in an error; the rest is counted. */
const namesShown = 10;

export interface DeleteRequest {
  readonly reference: ObjectReference;
  /** Fate of the objects in the clusters. */
  readonly cascade: "delete" | "orphan";
  readonly confirmed: "confirmed" | "ask";
  readonly caller: Caller;
}

export interface DeleteAnswer {
  /** With `deleting`, the planner deletes the objects first, then the row. */
  readonly outcome: "deleting" | "deleted";
  readonly consequences?: Consequences;
}

/**
 * Deletes an object. A SyncGroup or Sync is only marked: the planner does the work, cluster by cluster, and removes the
 * row. A Source is deleted when nothing uses it; a Cluster when nothing is assigned to it, or when its objects are
 * orphaned.
 * @throws StarlingError `NotFound`, `ConfirmationRequired` with what would be deleted, `InUse` with the users.
 */
export async function deleteObject(ports: ApiPorts, request: DeleteRequest): Promise<DeleteAnswer> {
  const row = await ports.table.get(objectKey(request.reference));
  if (row === undefined) return deleteRemains(ports, request);
  if (row.type === "Source") return deleteSource(ports, { row, request });
  if (row.type === "Receiver") return deleteReceiver(ports, { row, request });
  if (row.type === "Cluster") return deleteCluster(ports, { row, request });
  if (row.type === "ClusterDiscovery") return deleteDiscovery(ports, { row, request });
  if (row.type === "ClusterValues") return deleteClusterValues(ports, { row, request });
  if (row.type === "Window") return deleteWindow(ports, { row, request });
  return deleteOwner(ports, { row, request });
}

async function deleteOwner(
  ports: ApiPorts,
  { row, request }: { readonly row: OwnerRow; readonly request: DeleteRequest },
): Promise<DeleteAnswer> {
  const counted = await countSyncs(ports.table, { owner: syncOwner(row) });
  const object = objectText(request.reference);
  const fate = request.cascade === "delete" ? "their objects are deleted" : "their objects stay and are forgotten";
  const consequences = { ...counted, message: `deleting ${object} takes ${countText(counted)} with it; ${fate}` };
  if (request.confirmed === "ask") {
    throw refusal("ConfirmationRequired", consequences.message, { consequences: [consequences] });
  }
  const { caller, cascade, reference } = request;
  const now = ports.clock.now();
  const change = await writeObject(ports, {
    reference,
    verb: `delete (cascade=${cascade})`,
    caller,
    decide(before) {
      if (before === undefined) throw refusal("NotFound", `${object} does not exist`);
      const going = before.operations.deletion;
      if (going?.cascade === cascade) {
        return unchanged(before);
      }
      const number = nextAct(before.operations);
      const deletion = { by: caller.principal, at: now.toISOString(), cascade, number, ...reasonOf(caller) };
      return operationsChange(before, { ...before.operations, deletion }, now);
    },
  });
  await sendAfter(ports, [change]);
  return { outcome: "deleting", consequences };
}

async function deleteSource(
  ports: ApiPorts,
  { row, request }: { readonly row: SourceRow; readonly request: DeleteRequest },
): Promise<DeleteAnswer> {
  const reference = { namespace: row.namespace, name: row.name };
  const object = objectText(request.reference);
  const users = await firstRows(ports.table, { ...ranges.uses(row), limit: namesShown + 1, newer: "kept" });
  if (users.length > 0) {
    const names = users.map((user) => {
      const including = keys.includes.parse(user);
      if (including !== undefined) return `Source/${including.including}`;
      const { kind, name } = keys.uses.read(user).owner;
      return `${kind}/${name}`;
    });
    const shown = `${names.slice(0, namesShown).join(", ")}${names.length > namesShown ? " and more" : ""}`;
    throw refusal("InUse", `${object} is used by ${shown}; point them at another Source or delete them first`, {
      users: names,
    });
  }
  if (request.confirmed === "ask") {
    const consequences = { syncs: 0, clusters: 0, message: `deleting ${object}, which nothing uses` };
    throw refusal("ConfirmationRequired", consequences.message, { consequences: [consequences] });
  }
  await removeRow(ports, {
    row,
    request,
    also: [
      { delete: keys.sourceEntry(reference) },
      { delete: keys.repository(repositoryOf(row), reference) },
      ...includedIn(row.spec).map((name) => ({
        delete: keys.includes({ namespace: row.namespace, name }, row.name),
      })),
    ],
  });
  return { outcome: "deleted" };
}

/** Its Sources stay, and are polled in their intervals. A new Receiver of this name gets another URL. */
async function deleteReceiver(
  ports: ApiPorts,
  { row, request }: { readonly row: ReceiverRow; readonly request: DeleteRequest },
): Promise<DeleteAnswer> {
  const message = `deleting ${objectText(request.reference)}: its URL is known no longer, also when a Receiver of this name is applied again; its Sources are polled in their intervals`;
  const consequences = { syncs: 0, clusters: 0, message };
  if (request.confirmed === "ask") throw refusal("ConfirmationRequired", message, { consequences: [consequences] });
  await removeRow(ports, { row, request, also: [{ delete: keys.receiverEntry(receiverId(row), row) }] });
  return { outcome: "deleted", consequences };
}

/** The clusters that it found stay as they are; another ClusterDiscovery may continue with them. */
async function deleteDiscovery(
  ports: ApiPorts,
  { row, request }: { readonly row: DiscoveryRow; readonly request: DeleteRequest },
): Promise<DeleteAnswer> {
  const clusters = row.status.clusters?.found ?? 0;
  const stay = `the ${clusters} ${clusters === 1 ? "cluster" : "clusters"} that it found stay registered, as they are`;
  const consequences = { syncs: 0, clusters, message: `deleting ${objectText(request.reference)}: ${stay}` };
  if (request.confirmed === "ask") {
    throw refusal("ConfirmationRequired", consequences.message, { consequences: [consequences] });
  }
  await removeRow(ports, { row, request, also: [] });
  return { outcome: "deleted", consequences };
}

/** Its values count no longer, so that every owner that refers to them is informed. */
async function deleteClusterValues(
  ports: ApiPorts,
  { row, request }: { readonly row: ClusterValuesRow; readonly request: DeleteRequest },
): Promise<DeleteAnswer> {
  const names = Object.keys(row.spec.values).join(", ");
  return deleteSelection(ports, {
    ...{ row, request, also: [valuesVersionUpdate()] },
    messageFor: (count) =>
      `deleting ${objectText(request.reference)} takes its values (${names}) from ${count}; what uses them is rendered anew, or waits for somebody to set them`,
  });
}

/** Its clusters may get changes at any time, as far as other windows allow. */
async function deleteWindow(
  ports: ApiPorts,
  { row, request }: { readonly row: WindowRow; readonly request: DeleteRequest },
): Promise<DeleteAnswer> {
  const groups = row.spec.groups === undefined ? "" : `groups ${groupsText(row.spec.groups)} on `;
  return deleteSelection(ports, {
    ...{ row, request, also: [windowRemoval(row.name)] },
    messageFor: (count) =>
      `deleting ${objectText(request.reference)} lets changes of ${groups}${count} start at any time that no other Window denies`,
  });
}

interface SelectionRemoval {
  readonly row: ClusterValuesRow | WindowRow;
  readonly request: DeleteRequest;
  readonly also: readonly Write[];
  /** @param count - `1 cluster`, `3 clusters`: the registered ones that it selects. */
  readonly messageFor: (count: string) => string;
}

/** Deletes what selects clusters, and informs the owners that select one of them. */
async function deleteSelection(
  ports: ApiPorts,
  { row, request, also, messageFor }: SelectionRemoval,
): Promise<DeleteAnswer> {
  const selection = clustersOf(row.spec);
  const selected = (await registered(ports.table)).filter((cluster) => selects(selection, cluster));
  const message = messageFor(counted(selected.length, "cluster"));
  const consequences = { syncs: 0, clusters: selected.length, message };
  if (request.confirmed === "ask") {
    throw refusal("ConfirmationRequired", consequences.message, { consequences: [consequences] });
  }
  await removeRow(ports, { row, request, also });
  await sendSideBySide(ports, await ownersTaking(selected, ports.table));
  return { outcome: "deleted", consequences };
}

async function deleteCluster(
  ports: ApiPorts,
  { row, request }: { readonly row: ClusterRow; readonly request: DeleteRequest },
): Promise<DeleteAnswer> {
  const object = objectText(request.reference);
  const syncs = (await requireForgettable(ports.table, row.name)).filter(isAssigned);
  const consequences = {
    syncs: syncs.length,
    clusters: 1,
    message: `deleting ${object} forgets ${syncs.length} ${syncs.length === 1 ? "Sync" : "Syncs"}; the objects in the cluster stay${foundAgain(row)}`,
  };
  if (syncs.length > 0 && request.cascade === "delete") {
    const names = syncs.map((sync) => `${sync.namespace}/${sync.name}`);
    const shown = `${names.slice(0, namesShown).join(", ")}${names.length > namesShown ? " and more" : ""}`;
    const remedy = "deselect it in those groups first, or delete it with cascade=orphan, which leaves its objects";
    throw refusal("InUse", `${object} has ${syncs.length} Syncs assigned (${shown}); ${remedy}`, { users: names });
  }
  if (request.confirmed === "ask") {
    throw refusal("ConfirmationRequired", consequences.message, { consequences: [consequences] });
  }
  // A ClusterDiscovery that has found the cluster registers it again.
  const found = row.discovered === undefined ? [] : [{ delete: keys.found(row.discovered.arn) }];
  const cordons = row.operations.cordoned === undefined ? [] : [cordonUpdate(row.name, undefined)];
  const also = [{ delete: keys.fleet(row.name) }, ...found, ...cordons];
  await removeRow(ports, { row, request, also });
  await forgetSyncs(ports, row.name, "delete it once more");
  await ports.sender.send(await everyOwner(ports.table));
  return { outcome: "deleted", consequences };
}

function foundAgain({ discovered }: ClusterRow): string {
  if (discovered === undefined) return "";
  return `; ClusterDiscovery ${discovered.by} registers it anew when it looks next, unless it leaves it out (spec.eks.tags) or EKS has no such cluster any more`;
}

/** The next deletion of a Cluster finishes one that broke off after the Cluster's own row was deleted. */
async function deleteRemains(ports: ApiPorts, { reference }: DeleteRequest): Promise<DeleteAnswer> {
  const object = objectText(reference);
  if (reference.kind !== "Cluster") throw refusal("NotFound", `${object} does not exist`);
  const forgotten = await forgetSyncs(ports, reference.name, "delete it once more");
  if (forgotten === 0) throw refusal("NotFound", `${object} does not exist`);
  await ports.sender.send(await everyOwner(ports.table));
  return { outcome: "deleted" };
}

async function removeRow(
  ports: ApiPorts,
  {
    row,
    request,
    also,
  }: {
    row: SourceRow | ReceiverRow | ClusterRow | ClusterValuesRow | WindowRow | DiscoveryRow;
    request: DeleteRequest;
    also: readonly Write[];
  },
): Promise<void> {
  const { reference, caller, cascade } = request;
  try {
    await writeWithFleet(ports.table, [
      { delete: { pk: row.pk, sk: row.sk }, when: { version: row.version } },
      ...also,
    ]);
  } catch (error) {
    if (!isConflict(error)) throw error;
    throw refusal(
      "Conflict",
      `${objectText(reference)} was written by somebody else just now; look at it and try again`,
    );
  }
  audit(ports, {
    verb: `delete (cascade=${cascade})`,
    caller,
    reference,
    before: row.generation,
    after: undefined,
  });
}

function reasonOf(caller: Caller): { reason?: string } {
  return caller.reason === undefined ? {} : { reason: caller.reason };
}
