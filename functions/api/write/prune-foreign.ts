import type { ApiPorts, Caller } from "#functions/api/request/api-ports.ts";
import { refusal } from "#functions/api/request/refusal.ts";
import { audit } from "#functions/api/write/write-object.ts";
import { defined } from "#shared/base/defined.ts";
import { isConflict } from "#shared/base/errors.ts";
import { due } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { PruneAct, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { ForeignObject } from "#shared/kube/membership.ts";
import { describeObject } from "#shared/kube/object-id.ts";

/** Number of tries: the planner and the cluster's worker write the same row, each a few times at most. */
const maxTries = 6;

export interface PruneRequest {
  readonly namespace: string;
  readonly name: string;
  /** Cluster of a group's Sync; a user's Sync names its own. */
  readonly cluster?: string;
  /** Uids of the objects that the caller was shown. */
  readonly uids: readonly string[];
  readonly confirmed: "confirmed" | "ask";
  readonly caller: Caller;
}

export interface PruneAnswer {
  readonly outcome: "configured" | "unchanged";
  readonly objects: PruneAct["objects"];
}

/**
 * Asks the worker to delete members of a Sync that no inventory recorded: those that a worker named, by their uids. The
 * request is written to the Sync's row on its cluster; an object that was replaced since stays.
 * @throws StarlingError `NotFound`, `ForeignChanged` when a uid is not among the named ones, `ConfirmationRequired`.
 */
export async function pruneForeign(ports: ApiPorts, request: PruneRequest): Promise<PruneAnswer> {
  const { namespace, name, caller } = request;
  const cluster = await clusterOf(ports, request);
  for (let attempt = 1; attempt <= maxTries; attempt++) {
    const row = await ports.table.get(keys.sync(cluster, namespace, name));
    if (row === undefined || row.desired.action === "orphan") {
      throw refusal("NotFound", `Sync ${namespace}/${name} is not on cluster ${cluster}`);
    }
    const objects = chosen(row, request.uids);
    if (isAskedAlready(row, objects)) return { outcome: "unchanged", objects };
    if (request.confirmed === "ask") throw consequences(row, objects);
    const now = ports.clock.now();
    const prune: PruneAct = {
      by: caller.principal,
      at: now.toISOString(),
      ...defined({ reason: caller.reason }),
      number: (row.operations?.prune?.number ?? 0) + 1,
      objects,
    };
    const next = { ...due(row, now.toISOString(), row.dispatches), operations: { prune }, version: row.version + 1 };
    try {
      await ports.table.write([{ put: next, when: { version: row.version } }]);
    } catch (error) {
      if (isConflict(error)) continue;
      throw error;
    }
    const verb = `prune (cluster=${cluster}, uids=${objects.map(({ uid }) => uid).join(",")})`;
    audit(ports, { verb, caller, reference: { kind: "Sync", namespace, name }, before: undefined, after: undefined });
    return { outcome: "configured", objects };
  }
  throw refusal(
    "Conflict",
    `Sync ${namespace}/${name} was being written by others ${maxTries} times in a row; try again`,
  );
}

async function clusterOf(ports: ApiPorts, { namespace, name, cluster }: PruneRequest): Promise<string> {
  if (cluster !== undefined) return cluster;
  const row = await ports.table.get(keys.object(namespace, "Sync", name));
  if (row !== undefined) return row.spec.cluster;
  if (!name.includes(".")) throw refusal("NotFound", `Sync ${namespace}/${name} does not exist`);
  throw refusal("BadRequest", `Sync ${namespace}/${name} belongs to a group and is on many clusters; say which one`);
}

/** The members that a worker named last. */
function chosen(row: SyncRow, uids: readonly string[]): PruneAct["objects"] {
  const named = new Map((row.observed?.foreign ?? []).filter(isPrunable).map((object) => [object.uid, object]));
  return [...new Set(uids)].map((uid) => {
    const object = named.get(uid);
    if (object !== undefined) return { id: object.id, uid };
    const message = `no foreign member of Sync ${row.namespace}/${row.name} on ${row.cluster} has the uid ${uid} now; look at them again, and prune what you have seen`;
    throw refusal("ForeignChanged", message);
  });
}

function isPrunable({ member, keep }: ForeignObject): boolean {
  return member && keep === undefined;
}

function isAskedAlready({ operations, observed }: SyncRow, objects: PruneAct["objects"]): boolean {
  const before = operations?.prune;
  if (before === undefined || before.number === observed?.handledPrune) return false;
  return (
    before.objects.length === objects.length &&
    objects.every(({ uid }) => before.objects.some((one) => one.uid === uid))
  );
}

function consequences(row: SyncRow, objects: PruneAct["objects"]) {
  const what = `${objects.length} ${objects.length === 1 ? "object that is" : "objects that are"} not recorded`;
  const message = `pruning Sync ${row.namespace}/${row.name} deletes ${what} from cluster ${row.cluster}: ${objects.map(({ id }) => describeObject(id)).join(", ")}`;
  return refusal("ConfirmationRequired", message, { consequences: [{ message, syncs: 1, clusters: 1 }] });
}
