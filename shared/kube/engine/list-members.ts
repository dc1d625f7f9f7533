import { runConcurrently } from "#shared/base/run-concurrently.ts";
import type { ClusterClient, KindInfo } from "#shared/kube/cluster-client.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import type { KubeObject } from "#shared/kube/kube-object.ts";
import { partOfLabel } from "#shared/kube/membership.ts";

export interface MemberQuery {
  readonly setId: string;
  /** The namespaces in which the members are known to be. */
  readonly namespaces: readonly string[];
  /** Search everywhere, even if all known members are in one namespace. */
  readonly scope?: "everywhere";
  readonly metadataOnly?: true;
}

const concurrency = 6;

/**
 * All objects of a kind with the set's label: members, and objects that only copied the label. It makes one LIST over
 * the cluster if that is allowed, otherwise one for each namespace of known members.
 */
export async function listMembers(
  client: ClusterClient,
  kind: KindInfo,
  { setId, namespaces, scope, metadataOnly }: MemberQuery,
): Promise<readonly KubeObject[]> {
  const query = { labelSelector: `${partOfLabel}=${setId}`, ...(metadataOnly ? { metadataOnly } : {}) };
  const [only] = namespaces;
  if (kind.namespaced && namespaces.length === 1 && only !== undefined && scope === undefined) {
    return client.list(kind, { ...query, namespace: only });
  }
  try {
    return await client.list(kind, query);
  } catch (error) {
    const refused = error instanceof KubeError && error.class === "forbidden";
    if (!refused || !kind.namespaced || namespaces.length === 0) throw error;
  }
  const items: KubeObject[] = [];
  await runConcurrently([...new Set(namespaces)], concurrency, async (namespace) => {
    items.push(...(await client.list(kind, { ...query, namespace })));
  });
  return items;
}
