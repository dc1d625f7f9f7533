import { StarlingError } from "#shared/base/errors.ts";
import { runConcurrently } from "#shared/base/run-concurrently.ts";
import type { ClusterClient } from "#shared/kube/cluster-client.ts";
import { listMembers } from "#shared/kube/engine/list-members.ts";
import { withFreshKinds } from "#shared/kube/engine/with-fresh-kinds.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import { type KubeObject, objectIdOf } from "#shared/kube/kube-object.ts";
import { formatGroupKind, type GroupKind, type ObjectId } from "#shared/kube/object-id.ts";

export interface MemberSearch {
  readonly setId: string;
  /** The kinds that members can have; undefined means every kind. */
  readonly kinds: readonly GroupKind[] | undefined;
  /** Namespaces of members, for kinds that Starling may not list over all namespaces. */
  readonly namespaces: readonly string[];
}

export interface FoundObject {
  readonly id: ObjectId;
  /** The version in which the object was read. */
  readonly version: string;
  readonly live: KubeObject;
}

export interface FoundMembers {
  /** All objects with the set's label: members, and objects that only copied the label. */
  readonly objects: readonly FoundObject[];
  /** Kinds that Starling may not list. Their objects are unknown. */
  readonly unread: readonly string[];
}

const concurrency = 8;

/**
 * Searches for all objects with the set's label, recorded or not, with one LIST for each kind.
 * @throws KubeError, or StarlingError `KindUnavailable`, when a kind is temporarily unreadable, because an incomplete
 * list must not pass for a complete one.
 */
export async function findMembers(client: ClusterClient, search: MemberSearch): Promise<FoundMembers> {
  const kinds = distinct(search.kinds ?? (await client.listableKinds()));
  const objects: FoundObject[] = [];
  const unread: string[] = [];
  await runConcurrently(kinds, concurrency, async (kind) => {
    try {
      objects.push(...(await withFreshKinds(client, () => findOfKind(client, kind, search))));
    } catch (error) {
      if (!(error instanceof KubeError) || error.class !== "forbidden") throw error;
      unread.push(formatGroupKind(kind));
    }
  });
  return { objects, unread: unread.sort() };
}

async function findOfKind(
  client: ClusterClient,
  { group, kind }: GroupKind,
  { setId, namespaces }: MemberSearch,
): Promise<readonly FoundObject[]> {
  const found = await client.lookup({ group, kind });
  if (found.outcome === "absent") return [];
  if (found.outcome === "unavailable") {
    throw new StarlingError(found.message, { code: "KindUnavailable", retry: "transient", data: { group, kind } });
  }
  const { info } = found;
  const items = await listMembers(client, info, { setId, namespaces, scope: "everywhere" });
  return items.map((live) => ({ id: objectIdOf(live, info), version: info.version, live }));
}

function distinct(kinds: readonly GroupKind[]): readonly GroupKind[] {
  return [...new Map(kinds.map((kind) => [formatGroupKind(kind), kind])).values()];
}
