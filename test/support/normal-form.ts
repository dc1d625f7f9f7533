/**
 * Normal forms of runs. Two runs are equal when their rows and clusters are equal, except for times, counters and
 * random names.
 */

import { S3BlobStore } from "#shared/adapters/aws/s3-blob-store.ts";
import { defined } from "#shared/base/defined.ts";
import type { JsonObject } from "#shared/base/json.ts";
import { stringifyJson } from "#shared/base/json.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { stageRunKey } from "#shared/fleet/rollout/stage-runs.ts";
import type { EventRow } from "#shared/fleet/rows/event-row.ts";
import type { StageRunRow, TargetRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { Row } from "#shared/fleet/rows/row.ts";
import { isOfType } from "#shared/fleet/rows/stored-row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { readInventory } from "#shared/kube/inventory.ts";
import { describeObject } from "#shared/kube/object-id.ts";
import { setIdOf } from "#shared/kube/parent-object.ts";
import type { World } from "#test/support/e2e-world.ts";
import { handUserAgent } from "#test/support/kube-call.ts";

export interface NormalForm {
  /** Rows by key. */
  readonly rows: Readonly<Record<string, unknown>>;
  /** Objects by cluster, and below it by kind, namespace and name. */
  readonly clusters: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** `cluster path` of every DELETE that an API server accepted from Starling, each once. */
  readonly deleted: readonly string[];
  /** The events for people, each once. */
  readonly events: readonly string[];
}

export async function normalForm(world: World): Promise<NormalForm> {
  const clusters: Record<string, Record<string, unknown>> = {};
  const uids = new Map<string, string>();
  const live = new Map<string, readonly JsonObject[]>();
  for (const { name } of world.fleet.connections()) {
    const objects = await world.fleet.objects(name);
    live.set(name, objects);
    for (const object of objects) uids.set(uidOf(object), `uid of ${name} ${titleOf(object)}`);
  }
  for (const [name, objects] of live) {
    clusters[name] = Object.fromEntries(
      objects
        .filter(isLasting)
        .map((object) => [titleOf(object), strip(object, uids)] as const)
        .sort(byKey),
    );
  }
  const rows: (readonly [string, unknown])[] = [];
  const events = new Set<string>();
  const all = withRollbacks(await world.rows());
  const late = Map.groupBy(
    all.filter(isTarget).filter(joinedLater),
    ({ pk, stageRun }) => `${pk} ${stageRunKey(stageRun)}`,
  );
  // The hash of a plan is also made of the uids of its clusters.
  for (const { planHash, planParts, rollout, stage } of all.filter((row) => isOfType(row, "StageRun"))) {
    if (planHash !== undefined) uids.set(planHash, `plan of ${rollout} in ${stage}`);
    if (planParts !== undefined) uids.set(planParts.clusters, `clusters of ${rollout} in ${stage}`);
  }
  for (const row of all) {
    if (row.type === "Event") events.add(eventText(row as EventRow));
    const form = isOfType(row, "StageRun")
      ? strip(normalStageRun(row, late.get(`${row.pk} ${stageRunKey(row)}`) ?? []), uids)
      : await normalRow(world, row, uids);
    if (form !== undefined) rows.push([keyOf(row), form]);
  }
  return {
    rows: Object.fromEntries(rows.sort(byKey)),
    clusters,
    deleted: deletions(world),
    events: [...events].sort(),
  };
}

function byKey(a: readonly [string, unknown], b: readonly [string, unknown]): number {
  return a[0] < b[0] ? -1 : 1;
}

function deletions(world: World): readonly string[] {
  const taken = world.fleet
    .requests()
    .filter(
      ({ method, result, userAgent }) =>
        method === "DELETE" && result >= 200 && result < 300 && userAgent !== handUserAgent,
    );
  return [...new Set(taken.map((request) => `${request.cluster} ${request.path}`))].sort();
}

/** Fields with times, counters and versions, and fields that differ between two machines. */
const passing = new Set([
  ...["version", "dueShard", "dueKey", "dispatches", "expiresAt", "tries", "fence", "attempt", "attempts"],
  ...[
    "at",
    "since",
    "stateSince",
    "asOf",
    "createdAt",
    "startedAt",
    "endedAt",
    "completedAt",
    // It is there only in runs in which a cluster missed its stage and caught up.
    "catchUpEndedAt",
    "assignedAt",
    "attemptedAt",
    "storedAt",
    "retriedAt",
  ],
  ...["requestedAt", "lastSeenAt", "inspectedAt", "nextAt", "failedSince", "handledReconcile", "observedOperation"],
  ...["endpoint", "claim", "uid", "ownerUid", "clusterUid", "lately", "pk", "sk"],
  // A digest of the spec, and therefore of the port of the git server.
  "madeFrom",
  // The first requestor of a rollout. It is a tick if the push was lost.
  "correlationId",
  // Times and turns of the planner, deadlines of workers, and the version of the fleet.
  ...["deadline", "served", "queuedUntil", "fleet"],
  // The times at which needed blobs were stored again.
  ...["blobsAt", "keptAt", "expiresAt"],
  // The keys of blobs contain digests of their content, and therefore the uids of clusters.
  "pages",
  // The progress of an attempt.
  ...["progress", "readyAt", "begunAt"],
  // The deaths of workers.
  "deaths",
  ...["resourceVersion", "creationTimestamp", "generation", "observedGeneration", "time", "lastTransitionTime"],
  ...["lastUpdateTime", "starling.dev/fence", "starling.dev/attempt"],
  // The last written clusters, in the order of their writers. A race can leave names out.
  "noted",
  // Random values of an assignment, and facts about one of its attempts.
  ...["token", "earlier", "tried", "claimed", "doneAt", "starling.dev/token", "starling.dev/inventory"],
  // Whether the previous assignment had reached the cluster before this one was made.
  "anew",
  // A parent that was written again names an older inventory.
  "f:starling.dev/inventory",
]);

function strip(value: unknown, uids: ReadonlyMap<string, string>): unknown {
  if (typeof value === "string") return uids.get(value) ?? withoutPorts(value);
  if (typeof value === "bigint") return stringifyJson(value);
  if (Array.isArray(value)) return value.map((item) => strip(item, uids));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name, inner]) => inner !== undefined && !passing.has(name))
      .map(([name, inner]) => [name, name === attempted ? newestOf(inner) : strip(inner, uids)] as const)
      .map(([name, inner]) => [name, name === "events" ? unnumbered(inner) : inner] as const)
      .sort(byKey),
  );
}

/** The events of a Source without the number of the newest: a Source that failed for a while has more of them. */
function unnumbered(events: unknown): unknown {
  if (typeof events !== "object" || events === null || Array.isArray(events)) return events;
  const { last: _last, ...others } = events as { readonly last?: unknown };
  return others;
}

const attempted = "starling.dev/attempted";

/** Whether older renderings were settled at the start depends on timing. */
function newestOf(list: unknown): unknown {
  return typeof list === "string" ? JSON.parse(list).at(-1) : list;
}

function withoutPorts(text: string): string {
  return text.replaceAll(/127\.0\.0\.1:\d+/g, "127.0.0.1:PORT");
}

/** The keys of a Source's history contain times. */
function keyOf(row: Row): string {
  const key = row.type === "Revision" ? `${row.pk}|${row.sk.split("#").slice(1).join("#")}` : `${row.pk}|${row.sk}`;
  return withoutPorts(key);
}

async function normalRow(world: World, row: Row, uids: ReadonlyMap<string, string>): Promise<unknown> {
  // Leases and rendering times depend on timing.
  if (row.type === "Lease" || row.type === "FolderUse" || row.type === "Event") return undefined;
  if (row.type === "SyncOnCluster") return normalSync(world, row as SyncRow, uids);
  if (isTarget(row)) return strip({ ...row, ...normalTarget(row) }, uids);
  const { members } = row as Row & { readonly members?: string };
  return strip({ ...row, ...(members === undefined ? {} : { members: JSON.parse(await blob(world, members)) }) }, uids);
}

/**
 * The stages' current rollout is a rollback from its first moment on, so a cluster may get it before its target has a
 * turn, which then is unchanged.
 */
function withRollbacks(rows: readonly Row[]): readonly Row[] {
  const ledgers = rows.filter((row) => isOfType(row, "RolloutState")).flatMap(({ ledger }) => ledger);
  const rollbacks = new Set(ledgers.filter(({ rollback }) => rollback !== undefined).map(({ number }) => number));
  return rows.map((row) => {
    // Stages pass a rollout in any order where a rollback lets all of them begin.
    if (isOfType(row, "RolloutState"))
      return {
        ...row,
        ledger: row.ledger.map((one) => ({ ...one, ...defined({ passedIn: one.passedIn?.toSorted() }) })),
      };
    if (isTarget(row) && rollbacks.has(row.stageRun.rollout) && row.state === "Unchanged")
      return { ...row, state: "Succeeded" };
    if (!isOfType(row, "StageRun") || !rollbacks.has(row.rollout)) return row;
    const { Succeeded, Unchanged } = row.counts;
    return { ...row, counts: { ...row.counts, Succeeded: Succeeded + Unchanged, Unchanged: 0 } };
  });
}

/** @param late - the targets that joined later. */
function normalStageRun(
  { counts, away: _away, message: _message, transitions: _transitions, ...rest }: StageRunRow,
  late: readonly TargetRow[],
) {
  const { Succeeded, Superseded } = counts;
  const folded = { Succeeded: Succeeded + late.length, Unreachable: 0 };
  const caughtUp = late.filter(({ state }) => state === "Superseded").length;
  return { ...rest, counts: { ...counts, ...folded, Superseded: Superseded - caughtUp } };
}

function normalTarget(target: TargetRow) {
  const { state, reason } = target;
  return state === "Succeeded" || joinedLater(target) ? { state: "Succeeded", reason: "" } : { state, reason };
}

/** A target that did not answer catches up later, outside the stage run. Its Sync reports the result. */
function joinedLater({ state, reason }: TargetRow): boolean {
  return state === "Unreachable" || (state === "Superseded" && reason === "comes to its stage again");
}

function isTarget(row: Row): row is TargetRow {
  return isOfType(row, "Target");
}

/** The number of attempts may differ. All facts must be about the newest attempt. */
async function normalSync(world: World, row: SyncRow, uids: ReadonlyMap<string, string>): Promise<unknown> {
  const { observed, desired } = row;
  if (observed === undefined) return strip(row, uids);
  const { inventory, reason, message, ...rest } = observed;
  const about = {
    newestAttempt: observed.attempt === desired.attempt,
    newestApplied: observed.applied?.attempt === desired.attempt,
  };
  const members = inventory === undefined ? [] : await inventoryOf(world, row, { digest: inventory, uids });
  return strip({ ...row, observed: { ...rest, reason, message, about, members } }, uids);
}

/** The inventory's entry of each object, and whether the cluster still has this object. */
async function inventoryOf(
  world: World,
  row: SyncRow,
  stored: { readonly digest: string; readonly uids: ReadonlyMap<string, string> },
): Promise<unknown> {
  const text = await blob(world, blobKeys.inventory(row.cluster, stored.digest));
  const inventory = readInventory(text, setIdOf({ syncNamespace: row.namespace, syncName: row.name }));
  return inventory.entries.map((entry) => ({
    object: describeObject(entry.id),
    is: stored.uids.get(entry.uid) ?? "an object that is not there",
    ownedHash: entry.ownedHash,
    valuesHash: entry.valuesHash,
  }));
}

async function blob(world: World, key: string): Promise<string> {
  const blobs = new S3BlobStore(world.machine.aws.s3, world.machine.environment.bucket);
  return Buffer.from(await blobs.get(key)).toString("utf8");
}

function eventText({ pk, severity, cluster, rollout, revision, reason, message }: EventRow): string {
  return [pk, severity, cluster, rollout, revision, reason, message].join(" | ");
}

function titleOf(object: JsonObject): string {
  const { name, namespace } = metadataOf(object);
  return `${object.kind} ${namespace === undefined ? "" : `${namespace}/`}${name}`;
}

function uidOf(object: JsonObject): string {
  return String(metadataOf(object).uid);
}

function metadataOf(object: JsonObject): JsonObject {
  return object.metadata as JsonObject;
}

/** Leaves out objects with random names from controllers, and objects that every cluster has. */
function isLasting(object: JsonObject): boolean {
  const kind = String(object.kind);
  const name = String(metadataOf(object).name);
  if (["Pod", "ReplicaSet", "Event", "EndpointSlice", "Lease", "ControllerRevision"].includes(kind)) return false;
  return name !== "kube-root-ca.crt";
}
