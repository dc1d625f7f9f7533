import { runConcurrently } from "#shared/base/run-concurrently.ts";
import { isBuiltinGroup } from "#shared/kube/builtin-groups.ts";
import type { ClusterClient } from "#shared/kube/cluster-client.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import { generationOf } from "#shared/kube/kube-object.ts";
import type { GroupKind } from "#shared/kube/object-id.ts";

const concurrency = 8;

/**
 * The generation of the definition of each custom kind, by the definition's name. A changed definition can prune fields
 * of its objects without a new resourceVersion. Kinds of aggregated servers have no definition. Without permission to
 * read definitions, the result is empty.
 */
export async function definitionGenerations(
  client: ClusterClient,
  kinds: readonly GroupKind[],
): Promise<Readonly<Record<string, number>>> {
  const names = await definitionNames(client, kinds);
  if (names.size === 0) return {};
  const definitions = await client.lookup({ group: "apiextensions.k8s.io", kind: "CustomResourceDefinition" });
  if (definitions.outcome !== "found") return {};
  const generations = new Map<string, number>();
  await runConcurrently([...names], concurrency, async (name) => {
    const definition = await getReadable(client, definitions.info, name);
    if (definition !== undefined) generations.set(name, generationOf(definition));
  });
  return Object.fromEntries([...generations].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The names of the definitions of those kinds that are served and can have one. */
export async function definitionNames(
  client: ClusterClient,
  kinds: readonly GroupKind[],
): Promise<ReadonlySet<string>> {
  const names = new Set<string>();
  for (const { group, kind } of kinds) {
    if (isBuiltinGroup(group)) continue;
    const found = await client.lookup({ group, kind });
    if (found.outcome === "found") names.add(`${found.info.plural}.${group}`);
  }
  return names;
}

async function getReadable(client: ClusterClient, kind: Parameters<ClusterClient["get"]>[0], name: string) {
  try {
    return await client.get(kind, { namespace: "", name }, { metadataOnly: true });
  } catch (error) {
    if (error instanceof KubeError && error.class === "forbidden") return undefined;
    throw error;
  }
}
