/** One apply, over what passes by itself and what stands in its way for the server's sake. */
import type { SleepingClock } from "#shared/base/clock.ts";
import { isBuiltinGroup } from "#shared/kube/builtin-groups.ts";
import type { ClusterClient, KindInfo, WriteAnswer } from "#shared/kube/cluster-client.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import { type ManifestObject, stringAt } from "#shared/kube/kube-object.ts";
import { retagPatch } from "#shared/kube/managed-fields.ts";

/** A kind may answer 404 for a moment after its definition says Established (kustomize-controller#98). */
const noMatchRetryDelaysMs = [100, 250, 500, 1000, 1500];

/** The server refuses it then when anybody has written to the object since, were it only its status. */
export function withVersion(object: ManifestObject, resourceVersion = ""): ManifestObject {
  return resourceVersion === "" ? object : { ...object, metadata: { ...object.metadata, resourceVersion } };
}

/** The server makes it where it is not there, and refuses it where it is: no object has this version. */
export function overNothing(object: ManifestObject): ManifestObject {
  return withVersion(object, "1");
}

export async function applyOverObstacles(
  { client, clock }: { readonly client: ClusterClient; readonly clock: SleepingClock },
  kind: KindInfo,
  object: ManifestObject,
): Promise<WriteAnswer> {
  let asked = object;
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await client.apply(kind, asked);
    } catch (error) {
      if (!(error instanceof KubeError)) throw error;
      const delayMs = noMatchRetryDelaysMs[attempt];
      if (error.class === "noMatch" && delayMs !== undefined && !isBuiltinGroup(kind.group)) await clock.sleep(delayMs);
      else if (error.class === "migrate" && attempt === 0) asked = await retagged(client, kind, object);
      else throw error;
    }
  }
}

/**
 * Entries of an older version in managedFields make the apply fail: tags them with the version that is applied.
 * @returns the object, over the version that this made of the one it was to be applied over.
 */
async function retagged(client: ClusterClient, kind: KindInfo, object: ManifestObject): Promise<ManifestObject> {
  const { namespace = "", name, resourceVersion } = object.metadata;
  const key = { namespace, name };
  const live = await client.get(kind, key);
  const patch = live && retagPatch(live, object.apiVersion);
  if (patch === undefined) return object;
  const answer = await client.patch(kind, key, patch);
  const isAsExpected = resourceVersion === stringAt(live, "metadata", "resourceVersion");
  return isAsExpected ? withVersion(object, stringAt(answer.object, "metadata", "resourceVersion")) : object;
}
