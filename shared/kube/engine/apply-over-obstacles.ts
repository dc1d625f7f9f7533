/** Applies one object, and retries over problems that pass by themselves or come from the server's own data. */
import type { SleepingClock } from "#shared/base/clock.ts";
import { isBuiltinGroup } from "#shared/kube/builtin-groups.ts";
import type { ClusterClient, KindInfo, WriteAnswer } from "#shared/kube/cluster-client.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import { type ManifestObject, stringAt } from "#shared/kube/kube-object.ts";
import { retagPatch } from "#shared/kube/managed-fields.ts";

/** A kind may answer 404 for a moment after its definition says Established (kustomize-controller#98). */
const noMatchRetryDelaysMs = [100, 250, 500, 1000, 1500];

/** With the version, the server refuses the apply when anyone has written the object since, even only its status. */
export function withVersion(object: ManifestObject, resourceVersion = ""): ManifestObject {
  return resourceVersion === "" ? object : { ...object, metadata: { ...object.metadata, resourceVersion } };
}

/** With this version, which no object has, the server creates a missing object and refuses an existing one. */
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
 * Entries of an older version in managedFields make the apply fail. Tags them with the version that is applied.
 * @returns the object with the new resourceVersion, when the old one was the expected one.
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
