import { runConcurrently } from "#shared/base/run-concurrently.ts";
import type { ClusterClient, KindInfo } from "#shared/kube/cluster-client.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import type { KubeObject } from "#shared/kube/kube-object.ts";
import { partOfLabel } from "#shared/kube/membership.ts";

export interface MemberQuery {
  readonly setId: string;
  /** The namespaces the members are known to be in. */
  readonly namespaces: readonly string[];
  /** Look everywhere, though the members are known to be in one namespace. */
  readonly scope?: "everywhere";
  readonly metadataOnly?: true;
}

const concurrency = 6;

/**
 * Everything of a kind that carries the set's label: members, and what only copied the label. One LIST over the cluster
 * where that is allowed; else one for each namespace the members are known to be in.
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
