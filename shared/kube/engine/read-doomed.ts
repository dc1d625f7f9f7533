import { defined } from "#shared/base/defined.ts";
import { runConcurrently } from "#shared/base/run-concurrently.ts";
import type { ClusterClient } from "#shared/kube/cluster-client.ts";
import type { DeletionNote } from "#shared/kube/deletion-order.ts";
import { listMembers } from "#shared/kube/engine/list-members.ts";
import { endsTheRun, failureOf, type ObjectFailure } from "#shared/kube/engine/object-failure.ts";
import { isCutOff, type OwnDeadline } from "#shared/kube/engine/own-deadline.ts";
import { withFreshKinds } from "#shared/kube/engine/with-fresh-kinds.ts";
import { type KubeObject, objectIdOf } from "#shared/kube/kube-object.ts";
import { isBuiltinGroup, kindKey, type ObjectId, objectIdKey } from "#shared/kube/object-id.ts";

interface Doomed extends OwnDeadline {
  readonly setId: string;
  readonly ids: readonly ObjectId[];
}

export interface ReadDoomed {
  readonly liveOf: ReadonlyMap<string, KubeObject>;
  readonly notes: readonly DeletionNote[];
  /** Objects of kinds that could not be listed: whether they exist is unknown. */
  readonly unlisted: readonly ObjectId[];
  /** Why a kind could not be listed this time. The next run may succeed. */
  readonly unread?: string;
}

const concurrency = 8;

const passing: ReadonlySet<ObjectFailure["class"]> = new Set(["transient", "throttled", "expired"]);

/**
 * Reads the metadata of the objects to delete, with one LIST for each kind. A run that read each object alone could use
 * up its time before it deletes anything. When a kind cannot be listed, its objects are deleted in the order of their
 * kinds. A kind of the API server itself that could not be listed temporarily is listed by the next run.
 * @throws KubeError when the cluster as a whole does not answer or refuses access.
 */
export async function readDoomed(client: ClusterClient, doomed: Doomed): Promise<ReadDoomed> {
  const liveOf = new Map<string, KubeObject>();
  const notes: DeletionNote[] = [];
  const unlisted: ObjectId[] = [];
  let unread: string | undefined;
  const kinds = [...Map.groupBy(doomed.ids, kindKey).values()];
  await runConcurrently(kinds, concurrency, async (ofKind) => {
    const [first] = ofKind;
    if (first === undefined) return;
    try {
      const found = await withFreshKinds(client, () => listDoomed(client, { ...doomed, ids: ofKind }));
      if (found === undefined) unlisted.push(...ofKind);
      for (const live of found ?? []) {
        liveOf.set(objectIdKey(objectIdOf(live, first)), live);
      }
    } catch (error) {
      if (isCutOff(error, doomed)) throw error;
      const failure = failureOf(error);
      if (endsTheRun(failure)) throw error;
      if (isBuiltinGroup(first.group) && passing.has(failure.class)) {
        unread = `waits until ${first.kind} can be listed, because its marks decide the order of deletion: ${failure.message}`;
        return;
      }
      const message = `the dependencies of ${first.kind} are unknown, because it cannot be listed: ${failure.message}`;
      notes.push({ id: first, message });
      unlisted.push(...ofKind);
    }
  });
  return { liveOf, notes, unlisted, ...defined({ unread }) };
}

/** @returns undefined when it is unknown for now whether the kind exists. */
async function listDoomed(client: ClusterClient, { setId, ids }: Doomed): Promise<readonly KubeObject[] | undefined> {
  const [{ group, kind } = { group: "", kind: "" }] = ids;
  const found = await client.lookup({ group, kind });
  if (found.outcome !== "found") return found.outcome === "absent" ? [] : undefined;
  const namespaces = [...new Set(ids.map(({ namespace }) => namespace).filter((namespace) => namespace !== ""))];
  return listMembers(client, found.info, { setId, namespaces, metadataOnly: true });
}
