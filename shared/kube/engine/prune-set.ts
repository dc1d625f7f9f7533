import type { Clock } from "#shared/base/clock.ts";
import { runConcurrently } from "#shared/base/run-concurrently.ts";
import { rankOf, ranks } from "#shared/kube/apply-order.ts";
import type { ClusterClient, KindInfo } from "#shared/kube/cluster-client.ts";
import { type DeletionNote, type DeletionOrder, orderDeletion } from "#shared/kube/deletion-order.ts";
import { guardDefinition, guardNamespace } from "#shared/kube/engine/deletion-guards.ts";
import { type DeletionObstacle, DeletionObstacles } from "#shared/kube/engine/deletion-obstacles.ts";
import { stillHolds } from "#shared/kube/engine/ensure-parent.ts";
import { beingDeleted } from "#shared/kube/engine/held-by.ts";
import { entryOf } from "#shared/kube/engine/inventory-entry.ts";
import { endsTheRun, failureOf } from "#shared/kube/engine/object-failure.ts";
import { isCutOff, outOfTime } from "#shared/kube/engine/own-deadline.ts";
import type { PrunedObject } from "#shared/kube/engine/pruned-object.ts";
import { readDoomed } from "#shared/kube/engine/read-doomed.ts";
import { RunTime } from "#shared/kube/engine/run-time.ts";
import { withFreshKinds } from "#shared/kube/engine/with-fresh-kinds.ts";
import { withoutKind } from "#shared/kube/engine/without-kind.ts";
import type { InventoryEntry } from "#shared/kube/inventory.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import { isBeingDeleted, type KubeObject, stringAt } from "#shared/kube/kube-object.ts";
import { foreignOwner, isMember, keepMark } from "#shared/kube/membership.ts";
import { type ObjectId, objectIdKey } from "#shared/kube/object-id.ts";
import type { SyncClaim } from "#shared/kube/parent-object.ts";
import type { Among } from "#shared/kube/reasons.ts";

export interface PruneSetRequest {
  readonly setId: string;
  /** Entries of the inventory that are not desired any more, or objects whose deletion a user accepted by their uid. */
  readonly candidates: readonly Pick<InventoryEntry, "id" | "uid">[];
  /**
   * Objects of renderings that were attempted and are not desired. A worker that died between the apply and the
   * inventory may have left them. They must prove their membership, but need no recorded uid.
   */
  readonly unrecorded: readonly ObjectId[];
  /**
   * By `objectIdKey`, the set id of the sibling that desires a candidate, which is then not deleted; absent: no sibling
   * desires any.
   */
  readonly heldFor?: ReadonlyMap<string, string>;
  /**
   * Asked once, before the first deletion, about every object that would be deleted. @returns why none of them may be.
   */
  readonly guard?: (doomed: readonly ObjectId[]) => Promise<string | undefined>;
  /** The uids in the new inventory. The same object under another group is never deleted. */
  readonly keepUids: ReadonlySet<string>;
  /**
   * This worker's claim. A newer claim in the cluster stops the prune. The claim is read last, because it could change
   * while the store still answers.
   */
  readonly claim: SyncClaim;
  readonly clock: Clock;
  /** No deletion begins after this time. */
  readonly deadline: Date;
}

export type PruneResult =
  | {
      readonly outcome: "done" | "waiting" | "failed";
      readonly objects: readonly PrunedObject[];
      /**
       * Some deletions were not begun, or were cut off, because the time was up. Another run without the settled
       * objects continues.
       */
      readonly timeWasUp: boolean;
      /** For the inventory: these objects leave it. */
      readonly settled: readonly ObjectId[];
      /** For the inventory: objects that siblings desire are recorded as held for them. */
      readonly held: readonly InventoryEntry[];
      /** Remarks for users about objects, whatever their result. */
      readonly notes: readonly DeletionNote[];
    }
  | { readonly outcome: "refused"; readonly reason: Among<"ClusterAhead" | "PruneGuard">; readonly message: string };

interface Candidate {
  readonly id: ObjectId;
  /** Absent for an unrecorded object, and for one that may have been made anew since it was recorded. */
  readonly uid?: string;
}

const concurrency = 8;

/**
 * Deletes the objects that left the set, in the reverse of the order of applying; see `deletion-order.ts`. Each object
 * is read and must prove to be the applied one. It is deleted under its uid, and counts as deleted when it is gone.
 * Call this only after everything desired was applied.
 * @throws KubeError when the cluster as a whole does not answer or refuses access.
 */
export async function pruneSet(client: ClusterClient, request: PruneSetRequest): Promise<PruneResult> {
  const candidates = candidatesOf(request);
  const time = new RunTime(request);
  if (candidates.length === 0) return { outcome: "done", timeWasUp: false, ...nothing };
  if (time.isUp()) return notBegun(candidates);
  let order: Ordered | { readonly unread: string };
  try {
    const [read, holds] = await Promise.all([orderOf(client, candidates, request), stillHolds(client, request.claim)]);
    order = read;
    if (!holds) {
      const message = "a newer worker has written the parent object in the meantime; nothing was deleted";
      return { outcome: "refused", reason: "ClusterAhead", message };
    }
  } catch (error) {
    if (isCutOff(error, request)) return notBegun(candidates);
    throw error;
  }
  if ("unread" in order) return notBegun(candidates, order.unread);
  const message = await request.guard?.(doomedAmong(candidates, order, request));
  if (message !== undefined) return { outcome: "refused", reason: "PruneGuard", message };
  return pruneInOrder(client, { order, candidates, request, time });
}

interface Ordered extends DeletionOrder {
  /** By `objectIdKey`; empty when the objects were not read. */
  readonly liveOf: ReadonlyMap<string, KubeObject>;
  readonly unlisted: readonly ObjectId[];
}

/** A single object needs no order. */
async function orderOf(
  client: ClusterClient,
  candidates: readonly Candidate[],
  request: PruneSetRequest,
): Promise<Ordered | { readonly unread: string }> {
  const ids = candidates.map(({ id }) => id);
  if (ids.length === 1 && request.guard === undefined)
    return { ...orderDeletion(ids, new Map()), liveOf: new Map<string, KubeObject>(), unlisted: [] };
  const { liveOf, notes, unlisted, unread } = await readDoomed(client, { ...request, ids });
  if (unread !== undefined) return { unread };
  const order = orderDeletion(ids, liveOf);
  return { ...order, liveOf, unlisted, notes: [...notes, ...order.notes] };
}

/** The candidates that exist, and that nothing keeps; those that cannot be read are among them. */
function doomedAmong(
  candidates: readonly Candidate[],
  { liveOf, unlisted }: Pick<Ordered, "liveOf" | "unlisted">,
  request: PruneSetRequest,
): readonly ObjectId[] {
  const unknown = new Set(unlisted.map(objectIdKey));
  return candidates.flatMap((candidate) => {
    const { id } = candidate;
    const key = objectIdKey(id);
    if (request.heldFor?.has(key) === true) return [];
    if (unknown.has(key)) return [id];
    const live = liveOf.get(key);
    if (live === undefined || isBeingDeleted(live)) return [];
    return reasonToStay(candidate, live, request) === undefined ? [id] : [];
  });
}

interface PruneRun {
  readonly order: DeletionOrder;
  readonly candidates: readonly Candidate[];
  readonly request: PruneSetRequest;
  readonly time: RunTime;
}

async function pruneInOrder(
  client: ClusterClient,
  { order, candidates, request, time }: PruneRun,
): Promise<PruneResult> {
  const byKey = new Map(candidates.map((candidate) => [objectIdKey(candidate.id), candidate]));
  const obstacles = new DeletionObstacles(order);
  const objects: PrunedObject[] = [];
  for (const step of order.steps) {
    const verdicts = new Map<string, PrunedObject>();
    await runConcurrently(step, concurrency, async (id) => {
      const candidate = byKey.get(objectIdKey(id)) ?? { id };
      const obstacle = time.isUp() ? cutShort : obstacles.of(id);
      const verdict =
        obstacle?.outcome === "waiting"
          ? { id, ...obstacle }
          : await time.measured(() => pruneOne(client, candidate, { ...request, obstacle }));
      verdicts.set(objectIdKey(id), verdict);
    });
    const inOrder = step.flatMap((id) => verdicts.get(objectIdKey(id)) ?? []);
    objects.push(...inOrder);
    for (const verdict of inOrder) obstacles.note(verdict);
  }
  return {
    outcome: outcomeOf(objects),
    timeWasUp: objects.some(isCutShort),
    objects,
    settled: objects.filter(isSettled).map(({ id }) => id),
    held: heldAmong(objects),
    notes: [...order.notes, ...obstacles.notes],
  };
}

const nothing = { objects: [], settled: [], held: [], notes: [] };
const cutShort = { outcome: "waiting", message: outOfTime.message } as const satisfies DeletionObstacle;

function heldAmong(objects: readonly PrunedObject[]): readonly InventoryEntry[] {
  return objects.flatMap(({ entry }) => entry ?? []);
}

function notBegun(candidates: readonly Candidate[], message: string = cutShort.message): PruneResult {
  const objects = candidates.map(({ id }): PrunedObject => ({ id, outcome: "waiting", message }));
  return { outcome: "waiting", timeWasUp: message === cutShort.message, ...nothing, objects };
}

function isCutShort({ message }: PrunedObject): boolean {
  return message === outOfTime.message;
}

function candidatesOf({ candidates, unrecorded }: PruneSetRequest): readonly Candidate[] {
  const unrecordedKeys = new Set(unrecorded.map(objectIdKey));
  // An object that was recorded and attempted again since may have been created again with another uid.
  const recorded = candidates.map(({ id, uid }) => (unrecordedKeys.delete(objectIdKey(id)) ? { id } : { id, uid }));
  return [...recorded, ...unrecorded.filter((id) => unrecordedKeys.has(objectIdKey(id))).map((id) => ({ id }))];
}

/** The request with the obstacle to deleting one object. */
interface OneRequest extends PruneSetRequest {
  readonly obstacle: DeletionObstacle | undefined;
}

async function pruneOne(client: ClusterClient, candidate: Candidate, request: OneRequest): Promise<PrunedObject> {
  const { id } = candidate;
  try {
    return await withFreshKinds(client, () => proveAndDelete(client, candidate, request));
  } catch (error) {
    // The cut says nothing about the cluster. The next run sees whether the object was deleted.
    if (isCutOff(error, request)) return { id, ...cutShort };
    const failure = failureOf(error);
    if (endsTheRun(failure)) throw error;
    return { id, outcome: "failed", message: failure.message, failure };
  }
}

async function proveAndDelete(client: ClusterClient, candidate: Candidate, request: OneRequest): Promise<PrunedObject> {
  const { id } = candidate;
  const found = await client.lookup({ group: id.group, kind: id.kind });
  if (found.outcome === "unavailable") return { id, outcome: "waiting", message: found.message };
  if (found.outcome === "absent") return withoutKind(client, id);
  const { info } = found;
  // Only one of the places that an unrecorded object may have. The server does not know a path of the wrong scope.
  if (info.namespaced !== (id.namespace !== "")) return { id, outcome: "absent" };
  const live = await client.get(info, id, { metadataOnly: true });
  if (live === undefined) return { id, outcome: "absent" };
  const stays = reasonToStay(candidate, live, request);
  if (stays) return stays;
  const heldFor = request.heldFor?.get(objectIdKey(id));
  if (heldFor !== undefined) return held(live, { id, heldFor, version: info.version });
  if (isBeingDeleted(live)) return terminating(id, live);
  if (request.obstacle !== undefined) return { id, ...request.obstacle };
  const guard = await guardFor(client, id);
  if (guard) return { id, outcome: guard.kind === "keep" ? "kept" : "waiting", message: guard.message };
  return deleteAndConfirm(client, info, { id, uid: stringAt(live, "metadata", "uid") ?? "" });
}

/** The object still has this set's mark. The sibling overwrites the mark when it applies the object. */
function held(
  live: KubeObject,
  { id, heldFor, version }: { readonly id: ObjectId; readonly heldFor: string; readonly version: string },
): PrunedObject {
  const message = `it stays until applyset (${heldFor}), which desires it, takes it over`;
  const entry: InventoryEntry = { ...entryOf(live, { id, version }), watched: "nothing", heldFor };
  return { id, outcome: "held", message, entry };
}

function reasonToStay(candidate: Candidate, live: KubeObject, request: PruneSetRequest): PrunedObject | undefined {
  const { id } = candidate;
  const uid = stringAt(live, "metadata", "uid") ?? "";
  if (request.keepUids.has(uid)) {
    return { id, outcome: "moved", message: "the same object is applied under another group" };
  }
  if (candidate.uid !== undefined && candidate.uid !== uid) {
    return { id, outcome: "foreign", message: `another object has its name: uid ${uid}, recorded ${candidate.uid}` };
  }
  if (!isMember(live, request.setId)) {
    return { id, outcome: "foreign", message: "it is not a member of this Sync any more: its marks are gone" };
  }
  const owner = foreignOwner(live, request.setId);
  if (owner !== undefined) {
    return { id, outcome: "foreign", message: `${owner.tool} (${owner.owner}) has taken it over` };
  }
  const mark = keepMark(live);
  return mark === undefined ? undefined : { id, outcome: "kept", message: `it is marked ${mark}` };
}

async function guardFor(client: ClusterClient, id: ObjectId) {
  if (id.group === "" && id.kind === "Namespace") return guardNamespace(client, id);
  if (rankOf(id) === ranks.definition) return guardDefinition(client, id);
  return undefined;
}

async function deleteAndConfirm(
  client: ClusterClient,
  kind: KindInfo,
  { id, uid }: { readonly id: ObjectId; readonly uid: string },
): Promise<PrunedObject> {
  try {
    if ((await client.delete(kind, id, { uid })) === "gone") return { id, outcome: "deleted" };
  } catch (error) {
    if (!(error instanceof KubeError)) throw error;
    if (error.class === "notFound") return { id, outcome: "deleted" };
    if (error.class === "replaced") return { id, outcome: "foreign", message: "another object has taken its name" };
    throw error;
  }
  const left = await client.get(kind, id, { metadataOnly: true });
  if (left === undefined || stringAt(left, "metadata", "uid") !== uid) return { id, outcome: "deleted" };
  return terminating(id, left);
}

function terminating(id: ObjectId, live: KubeObject): PrunedObject {
  return { id, outcome: "terminating", message: beingDeleted(live) };
}

function outcomeOf(objects: readonly PrunedObject[]): "done" | "waiting" | "failed" {
  if (objects.some(({ outcome }) => outcome === "failed")) return "failed";
  return objects.every((object) => isSettled(object) || object.outcome === "held") ? "done" : "waiting";
}

function isSettled({ outcome }: PrunedObject): boolean {
  return isSettledOutcome(outcome);
}

function isSettledOutcome(outcome: PrunedObject["outcome"]): boolean {
  return outcome !== "held" && outcome !== "terminating" && outcome !== "waiting" && outcome !== "failed";
}
