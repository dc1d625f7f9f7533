import { runConcurrently } from "#shared/base/run-concurrently.ts";
import type { ClusterClient } from "#shared/kube/cluster-client.ts";
import type { DeletionNote } from "#shared/kube/deletion-order.ts";
import { listMembers } from "#shared/kube/engine/list-members.ts";
import { endsTheRun, failureOf } from "#shared/kube/engine/object-failure.ts";
import { isCutOff, type OwnDeadline } from "#shared/kube/engine/own-deadline.ts";
import { withFreshKinds } from "#shared/kube/engine/with-fresh-kinds.ts";
import { type KubeObject, objectIdOf } from "#shared/kube/kube-object.ts";
import { kindKey, type ObjectId, objectIdKey } from "#shared/kube/object-id.ts";

interface Doomed extends OwnDeadline {
  readonly setId: string;
  readonly ids: readonly ObjectId[];
}

const concurrency = 8;

/**
 * Reads the metadata of what is to be deleted, at one LIST for each kind: a run that read each object first might be through
 * with its time before it has deleted anything. Of a kind that cannot be listed nothing is known, and its objects go by their kind.
 * @throws KubeError when the cluster as a whole does not answer or does not let us in.
 */
export async function readDoomed(
  client: ClusterClient,
  doomed: Doomed,
): Promise<{ readonly liveOf: ReadonlyMap<string, KubeObject>; readonly notes: readonly DeletionNote[] }> {
  const liveOf = new Map<string, KubeObject>();
  const notes: DeletionNote[] = [];
  const kinds = [...Map.groupBy(doomed.ids, kindKey).values()];
  await runConcurrently(kinds, concurrency, async (ofKind) => {
    const [first] = ofKind;
    if (first === undefined) return;
    try {
      for (const live of await withFreshKinds(client, () => listDoomed(client, { ...doomed, ids: ofKind }))) {
        liveOf.set(objectIdKey(objectIdOf(live, first)), live);
      }
    } catch (error) {
      if (isCutOff(error, doomed)) throw error;
      const failure = failureOf(error);
      if (endsTheRun(failure)) throw error;
      const message = `what depends on what is not known of ${first.kind}, which cannot be listed: ${failure.message}`;
      notes.push({ id: first, message });
    }
  });
  return { liveOf, notes };
}

async function listDoomed(client: ClusterClient, { setId, ids }: Doomed): Promise<readonly KubeObject[]> {
  const [{ group, kind } = { group: "", kind: "" }] = ids;
  const found = await client.lookup({ group, kind });
  if (found.outcome !== "found") return [];
  const namespaces = [...new Set(ids.map(({ namespace }) => namespace).filter((namespace) => namespace !== ""))];
  return listMembers(client, found.info, { setId, namespaces, metadataOnly: true });
}
