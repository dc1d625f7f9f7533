import type { ApiPorts, Caller } from "#functions/api/request/api-ports.ts";
import { refusal } from "#functions/api/request/refusal.ts";
import { operationsChange, sourcesOf } from "#functions/api/write/object-change.ts";
import { audit } from "#functions/api/write/write-object.ts";
import { syncsOn } from "#shared/adapters/forget-syncs.ts";
import { readRow } from "#shared/adapters/read-row.ts";
import { defined } from "#shared/base/defined.ts";
import { isConflict, StarlingError } from "#shared/base/errors.ts";
import { keys, type Owner } from "#shared/fleet/rows/keys.ts";
import { acceptedRow } from "#shared/fleet/rows/lineage.ts";
import { nextAct, type OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { mayTakeOver, type Remembered } from "#shared/kube/parent-object.ts";
import { type Message, ownerKey } from "#shared/messages.ts";
import type { Write } from "#shared/ports.ts";

/** Number of tries: the planner and the cluster's worker write the same rows, each a few times at most. */
const maxTries = 10;
/** Number of names in an error. */
const namesShown = 10;

/** A Sync, and what the caller has seen that its cluster remembers of it. */
export interface SeenSync {
  readonly namespace: string;
  readonly name: string;
  readonly attempt: number;
  /** Absent when nothing is remembered. */
  readonly token?: string | undefined;
}

export interface RecoverRequest {
  readonly cluster: string;
  readonly syncs: readonly SeenSync[];
  /** Sources that were asked to be polled, and the number of that `reconcile`. */
  readonly sources: readonly { readonly namespace: string; readonly name: string; readonly number: number }[];
  /** A former installation, or the uid of a former Sync, whose Syncs are taken over. */
  readonly from?: string | undefined;
  /** True to recover also what clusters of the same owners refuse later: most clusters may not have been asked yet. */
  readonly all: boolean;
  readonly caller: Caller;
}

export interface RecoverAnswer {
  readonly recovered: readonly string[];
  /** Syncs whose cluster remembers something else by now; they stay as they are. */
  readonly moved: readonly string[];
  /** Syncs of an owner that cannot be recovered now, with the reason; they stay as they are. */
  readonly refused: readonly RefusedOwner[];
}

interface RefusedOwner {
  readonly syncs: readonly string[];
  /** `SourceNotReady`, `Conflict` */
  readonly code: string;
  readonly message: string;
}

/**
 * Lets Syncs of a cluster continue from what the cluster remembers of them, although these rows never wrote it. The
 * assignment is forgotten, because it may be older than the cluster's content. The planner assigns the present
 * revisions of their Sources, which must have been polled since. Everything of an owner is written in one transaction,
 * so that an open rollout assigns nothing in between. An owner that cannot be recovered does not stop the others. A
 * repetition finds nothing to do.
 * @throws StarlingError `NotFound`
 */
export async function recoverCluster(ports: ApiPorts, request: RecoverRequest): Promise<RecoverAnswer> {
  const { cluster } = request;
  const known = await readRow(ports.table, keys.cluster(cluster));
  if (known === undefined) throw refusal("NotFound", `Cluster ${cluster} does not exist`);
  const { asSeen, moved } = sortOut(await syncsOn(ports.table, cluster, "left out"), request);
  const owners = new Map(asSeen.map(({ owner }) => [ownerKey(owner), owner]));
  const done: string[] = [];
  const messages: Message[] = [];
  const refused: RefusedOwner[] = [];
  try {
    for (const [key, owner] of owners) {
      try {
        const recovered = await recoverOwner(ports, { owner, request });
        messages.push(...recovered.messages);
        done.push(...recovered.names);
      } catch (error) {
        if (!isRefusal(error)) throw error;
        const syncs = asSeen.filter((sync) => ownerKey(sync.owner) === key).map(nameOf);
        refused.push({ syncs, code: error.code, message: error.message });
      }
    }
  } finally {
    // Everything that succeeded before a failure is recorded as well, and continues.
    await reportOn(done, messages, { ports, request });
  }
  const reported = new Set([...done, ...refused.flatMap(({ syncs }) => syncs)]);
  const left = [...moved, ...asSeen.map(nameOf).filter((name) => !reported.has(name))];
  const gone = left.length > 0 && request.all ? await goneOn(ports, request) : new Set<string>();
  return {
    recovered: [...done, ...left.filter((name) => gone.has(name))],
    moved: left.filter((name) => !gone.has(name)),
    refused,
  };
}

/**
 * Syncs that the planner recovered from exactly this memory: it does so for an owner once its first cluster is
 * recovered.
 */
async function goneOn(ports: ApiPorts, { cluster, syncs }: RecoverRequest): Promise<ReadonlySet<string>> {
  const rows = await syncsOn(ports.table, cluster, "left out");
  const isDone = ({ namespace, name, observed, recovered }: SyncRow) => {
    const seen = syncs.find((one) => one.namespace === namespace && one.name === name);
    return seen !== undefined && observed?.remembered === undefined && isAsSeen(recovered?.remembered, seen);
  };
  return new Set(rows.filter(isDone).map(nameOf));
}

function isRefusal(error: unknown): error is StarlingError {
  return error instanceof StarlingError && (error.code === "SourceNotReady" || error.code === "Conflict");
}

async function reportOn(
  done: readonly string[],
  messages: readonly Message[],
  { ports, request }: { readonly ports: ApiPorts; readonly request: RecoverRequest },
): Promise<void> {
  if (done.length === 0) return;
  audit(ports, {
    verb: `recover (${done.join(", ")})`,
    caller: request.caller,
    reference: { kind: "Cluster", name: request.cluster },
    before: undefined,
    after: undefined,
  });
  await ports.sender.send(messages);
}

async function recoverOwner(
  ports: ApiPorts,
  { owner, request }: { readonly owner: Owner; readonly request: RecoverRequest },
): Promise<{ readonly names: readonly string[]; readonly messages: readonly Message[] }> {
  const { caller, cluster } = request;
  const now = ports.clock.now();
  for (let attempt = 1; attempt <= maxTries; attempt++) {
    const key = keys.object(owner.namespace, owner.kind, owner.name);
    const row = await readRow(ports.table, key);
    if (row !== undefined && isNewer(row)) return { names: [], messages: [] };
    if (row !== undefined) await requireSources(ports, row, request);
    const { asSeen } = sortOut(await syncsOn(ports.table, cluster, "left out"), request);
    const syncs = asSeen.filter((sync) => ownerKey(sync.owner) === ownerKey(owner));
    if (syncs.length === 0) return { names: [], messages: [] };
    const act = {
      by: caller.principal,
      at: now.toISOString(),
      ...defined({ reason: caller.reason }),
    };
    const writes: Write[] = syncs.map((sync) => ({
      put: { ...acceptedRow(sync, act), version: sync.version + 1 },
      when: { version: sync.version },
    }));
    const number = row === undefined ? 1 : nextAct(row.operations);
    const scope = request.all ? { all: true as const, ...defined({ from: request.from }) } : {};
    const recovered = { ...act, number, ...scope };
    const change = row === undefined ? undefined : operationsChange(row, { ...row.operations, recovered }, now);
    try {
      await ports.table.write([...(change?.writes ?? []), ...writes]);
      return { names: syncs.map(nameOf), messages: change?.messages ?? [] };
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
  }
  throw refusal("Conflict", `the Syncs of Cluster ${cluster} were being written by others; recover it once more`);
}

/** The memory that the caller has seen is written; an owner that is not named keeps its Syncs. */
function sortOut(rows: readonly SyncRow[], { syncs, from }: RecoverRequest) {
  const asSeen: SyncRow[] = [];
  const moved: string[] = [];
  for (const seen of syncs) {
    const row = rows.find(({ namespace, name }) => namespace === seen.namespace && name === seen.name);
    const remembered = row?.observed?.remembered;
    if (row !== undefined && isAsSeen(remembered, seen) && mayTakeOver(remembered, from)) asSeen.push(row);
    else moved.push(`${seen.namespace}/${seen.name}`);
  }
  return { asSeen, moved };
}

function isAsSeen(remembered: Remembered | undefined, { token, attempt }: SeenSync): remembered is Remembered {
  return remembered !== undefined && remembered.token === token && remembered.attempt === attempt;
}

function nameOf({ namespace, name }: SyncRow): string {
  return `${namespace}/${name}`;
}

/** An owner desires what its Sources have now, not what they had when the rows were saved. */
async function requireSources(ports: ApiPorts, row: OwnerRow, { sources }: RecoverRequest): Promise<void> {
  if (row.operations.deletion !== undefined) return;
  const names = [...sourcesOf(row)];
  const found = await ports.table.getMany(
    names.map((name) => keys.object(row.namespace, "Source", name)),
    { newer: "kept" },
  );
  const known = found.filter((one) => one.type === "Source");
  const late = names.filter((name) => {
    const source = known.find((one) => one.name === name);
    const asked = sources.find((one) => one.namespace === row.namespace && one.name === name);
    const handled = source?.status.handledReconcile;
    const isSince = asked !== undefined && handled !== undefined && handled >= asked.number;
    return !isSince || source?.status.failures !== undefined;
  });
  if (late.length === 0) return;
  const shown = late.slice(0, namesShown).map((name) => `source/${name}`);
  const message = `${shown.join(", ")} of namespace ${row.namespace} could not be polled since then: the desired objects of the cluster are not known`;
  throw refusal("SourceNotReady", `${message}; see starling describe ${shown[0]} -n ${row.namespace}`);
}
