import type { Clock } from "#shared/base/clock.ts";
import { runConcurrently } from "#shared/base/run-concurrently.ts";
import { inDeletionRanks, rankOf, ranks } from "#shared/kube/apply-order.ts";
import { isBuiltinGroup } from "#shared/kube/builtin-groups.ts";
import type { ClusterClient, KindInfo } from "#shared/kube/cluster-client.ts";
import { guardDefinition, guardNamespace } from "#shared/kube/engine/deletion-guards.ts";
import { stillHolds } from "#shared/kube/engine/ensure-parent.ts";
import { heldBy } from "#shared/kube/engine/held-by.ts";
import { entryOf } from "#shared/kube/engine/inventory-entry.ts";
import { endsTheRun, failureOf, type ObjectFailure } from "#shared/kube/engine/object-failure.ts";
import { isCutOff, outOfTime } from "#shared/kube/engine/own-deadline.ts";
import { RunTime } from "#shared/kube/engine/run-time.ts";
import { withFreshKinds } from "#shared/kube/engine/with-fresh-kinds.ts";
import type { InventoryEntry } from "#shared/kube/inventory.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import { isBeingDeleted, type KubeObject, stringAt } from "#shared/kube/kube-object.ts";
import { foreignOwner, isMember, keepMark } from "#shared/kube/membership.ts";
import { describeObject, type ObjectId, objectIdKey } from "#shared/kube/object-id.ts";
import type { SyncClaim } from "#shared/kube/parent-object.ts";
import type { Among } from "#shared/kube/reasons.ts";

/**
 * What became of one candidate. Settled, so that it leaves the inventory:
 * - `deleted`: confirmed gone; `absent`: it was gone before;
 * - `kept`: it asks not to be deleted, or never may be;
 * - `foreign`: it is no member any more, another tool has taken it over, or another object has its name;
 * - `moved`: the same object is applied under another group.
 * `held` is over and stays in the inventory: a sibling desires the object and has not taken it over yet.
 * Not settled: `terminating` (asked for, not gone yet), `waiting` (others go first), `failed`.
 */
export interface PrunedObject {
  readonly id: ObjectId;
  readonly outcome: "deleted" | "absent" | "kept" | "foreign" | "moved" | "held" | "terminating" | "waiting" | "failed";
  readonly message?: string;
  /** Of one that is held: for the inventory. */
  readonly entry?: InventoryEntry;
  readonly failure?: ObjectFailure;
}

export interface PruneRequest {
  readonly setId: string;
  /** Entries of the inventory that are not desired any more, or what somebody has accepted by its uid. */
  readonly candidates: readonly Pick<InventoryEntry, "id" | "uid">[];
  /**
   * Objects of renderings that were attempted and are not desired: a worker that died between the apply and the
   * inventory may have left them. They need the proof of membership, but no recorded uid.
   */
  readonly unrecorded: readonly ObjectId[];
  /** By `objectIdKey`, the set id of the sibling that desires a candidate, which is not deleted then; absent: none does. */
  readonly heldFor?: ReadonlyMap<string, string>;
  /** Uids of what the inventory now holds: the same object under another group is never deleted. */
  readonly keepUids: ReadonlySet<string>;
  /**
   * This worker's claim: somebody newer in the cluster stops the prune. It is read when all else is known: what was read
   * before the last answer of the store may have been another one's by then.
   */
  readonly claim: SyncClaim;
  readonly clock: Clock;
  /** No deletion is begun after this. */
  readonly deadline: Date;
}

export type PruneResult =
  | {
      readonly outcome: "done" | "waiting" | "failed";
      readonly objects: readonly PrunedObject[];
      /** Some of it was not begun, or cut off, because the time was up: another run without the settled gets further. */
      readonly timeWasUp: boolean;
      /** For the inventory: these leave it. */
      readonly settled: readonly ObjectId[];
      /** For the inventory: what siblings desire is recorded as held for them. */
      readonly held: readonly InventoryEntry[];
    }
  | { readonly outcome: "refused"; readonly reason: Among<"ClusterAhead">; readonly message: string };

interface Candidate {
  readonly id: ObjectId;
  /** Absent for an unrecorded object, and for one that may have been made anew since it was recorded. */
  readonly uid?: string;
}

const concurrency = 8;

/**
 * Deletes what left the set, in the reverse of the order of application, custom resources first. Each object is read
 * and must prove to be the one that was applied; it is deleted under its uid, and counts as deleted when it is gone.
 * To be called only when everything desired was applied.
 * @throws KubeError when the cluster as a whole does not answer or does not let us in.
 */
export async function pruneSet(client: ClusterClient, request: PruneRequest): Promise<PruneResult> {
  const candidates = candidatesOf(request);
  const time = new RunTime(request);
  if (candidates.length === 0) return { outcome: "done", timeWasUp: false, objects: [], settled: [], held: [] };
  if (time.isUp()) return notBegun(candidates);
  try {
    if (!(await stillHolds(client, request.claim))) {
      const message = "the parent object was written by a newer worker meanwhile; nothing was deleted";
      return { outcome: "refused", reason: "ClusterAhead", message };
    }
  } catch (error) {
    if (isCutOff(error, request)) return notBegun(candidates);
    throw error;
  }
  const objects: PrunedObject[] = [];
  for (const rank of inDeletionRanks(candidates, ({ id }) => id)) {
    const obstacle = obstacleFor(candidates, objects);
    const verdicts = new Map<string, PrunedObject>();
    await runConcurrently(rank, concurrency, async (candidate) => {
      const message = time.isUp() ? outOfTime.message : obstacle;
      const verdict: PrunedObject =
        message === undefined
          ? await time.measured(() => pruneOne(client, candidate, request))
          : { id: candidate.id, outcome: "waiting", message };
      verdicts.set(objectIdKey(candidate.id), verdict);
    });
    objects.push(...rank.flatMap(({ id }) => verdicts.get(objectIdKey(id)) ?? []));
  }
  const settled = objects.filter(isSettled).map(({ id }) => id);
  return {
    outcome: outcomeOf(objects),
    timeWasUp: objects.some(isCutShort),
    objects,
    settled,
    held: heldAmong(objects),
  };
}

function heldAmong(objects: readonly PrunedObject[]): readonly InventoryEntry[] {
  return objects.flatMap(({ entry }) => entry ?? []);
}

function notBegun(candidates: readonly Candidate[]): PruneResult {
  const objects = candidates.map(({ id }): PrunedObject => ({ id, outcome: "waiting", message: outOfTime.message }));
  return { outcome: "waiting", timeWasUp: true, objects, settled: [], held: [] };
}

function isCutShort({ message }: PrunedObject): boolean {
  return message === outOfTime.message;
}

function candidatesOf({ candidates, unrecorded }: PruneRequest): readonly Candidate[] {
  const unrecordedKeys = new Set(unrecorded.map(objectIdKey));
  // An object that was both recorded and attempted again since may have been created anew, with another uid.
  const recorded = candidates.map(({ id, uid }) => (unrecordedKeys.delete(objectIdKey(id)) ? { id } : { id, uid }));
  return [...recorded, ...unrecorded.filter((id) => unrecordedKeys.has(objectIdKey(id))).map((id) => ({ id }))];
}

/**
 * Custom resources whose definition goes too are an operator being removed: what finalises them must stay until they
 * are gone.
 */
function obstacleFor(candidates: readonly Candidate[], objects: readonly PrunedObject[]): string | undefined {
  const definitionGroups = new Set(
    candidates
      .filter(({ id }) => rankOf(id) === ranks.definition)
      .map(({ id }) => id.name.slice(id.name.indexOf(".") + 1)),
  );
  const held = objects.find(({ id, outcome }) => !isSettledOutcome(outcome) && definitionGroups.has(id.group));
  return held && `waits until ${describeObject(held.id)} is gone`;
}

async function pruneOne(client: ClusterClient, candidate: Candidate, request: PruneRequest): Promise<PrunedObject> {
  const { id } = candidate;
  try {
    return await withFreshKinds(client, () => proveAndDelete(client, candidate, request));
  } catch (error) {
    // That says nothing of the cluster, and whether it was deleted is seen next time.
    if (isCutOff(error, request)) return { id, outcome: "waiting", message: outOfTime.message };
    const failure = failureOf(error);
    if (endsTheRun(failure)) throw error;
    return { id, outcome: "failed", message: failure.message, failure };
  }
}

async function proveAndDelete(
  client: ClusterClient,
  candidate: Candidate,
  request: PruneRequest,
): Promise<PrunedObject> {
  const { id } = candidate;
  const found = await client.lookup({ group: id.group, kind: id.kind });
  if (found.outcome === "unavailable") return { id, outcome: "waiting", message: found.message };
  if (found.outcome === "absent") return withoutKind(client, id);
  const { info } = found;
  // One of the places an unrecorded object might have; asked for there, the server would not know the path.
  if (info.namespaced !== (id.namespace !== "")) return { id, outcome: "absent" };
  const live = await client.get(info, id, { metadataOnly: true });
  if (live === undefined) return { id, outcome: "absent" };
  const stays = reasonToStay(candidate, live, request);
  if (stays) return stays;
  const heldFor = request.heldFor?.get(objectIdKey(id));
  if (heldFor !== undefined) return held(live, { id, heldFor, version: info.version });
  if (isBeingDeleted(live)) return terminating(id, live);
  const guard = await guardFor(client, id);
  if (guard) return { id, outcome: guard.kind === "keep" ? "kept" : "waiting", message: guard.message };
  return deleteAndConfirm(client, info, { id, uid: stringAt(live, "metadata", "uid") ?? "" });
}

/** Its mark is ours still. The sibling overwrites it when it applies the object. */
function held(
  live: KubeObject,
  { id, heldFor, version }: { readonly id: ObjectId; readonly heldFor: string; readonly version: string },
): PrunedObject {
  const message = `it stays until applyset (${heldFor}), which desires it, has taken it over`;
  const entry: InventoryEntry = { ...entryOf(live, { id, version }), watched: "nothing", heldFor };
  return { id, outcome: "held", message, entry };
}

function reasonToStay(candidate: Candidate, live: KubeObject, request: PruneRequest): PrunedObject | undefined {
  const { id } = candidate;
  const uid = stringAt(live, "metadata", "uid") ?? "";
  if (request.keepUids.has(uid)) {
    return { id, outcome: "moved", message: "the same object is applied under another group" };
  }
  if (candidate.uid !== undefined && candidate.uid !== uid) {
    return { id, outcome: "foreign", message: `another object has its name: uid ${uid}, recorded ${candidate.uid}` };
  }
  if (!isMember(live, request.setId)) {
    return { id, outcome: "foreign", message: "it is no member of this Sync any more: its marks are gone" };
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
  return { id, outcome: "terminating", message: `it is being deleted${heldBy(live)}` };
}

/**
 * A kind that is not served: gone with its definition, or not served for the moment. Only a definition that is really
 * not there means that its objects are not (kustomize-controller#90).
 */
async function withoutKind(client: ClusterClient, id: ObjectId): Promise<PrunedObject> {
  if (isBuiltinGroup(id.group)) return { id, outcome: "absent" };
  const definitions = await client.lookup({ group: "apiextensions.k8s.io", kind: "CustomResourceDefinition" });
  if (definitions.outcome !== "found") return { id, outcome: "waiting", message: "definitions cannot be read" };
  const defining = await client.list(definitions.info, {
    keep: (item) => stringAt(item, "spec", "group") === id.group && stringAt(item, "spec", "names", "kind") === id.kind,
  });
  if (defining.length === 0) return { id, outcome: "absent" };
  return { id, outcome: "waiting", message: `${id.kind} is defined and not served at the moment` };
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
