/** Computes what an apply of a rendering would change in a cluster now. Nothing is written, and hooks are ignored. */
import { canonicalJson } from "#shared/base/json.ts";
import { runConcurrently } from "#shared/base/run-concurrently.ts";
import { compareText } from "#shared/base/text-order.ts";
import { isLeftAlone, isOnlyMade } from "#shared/kube/apply-marks.ts";
import type { ClusterClient, KindInfo, KindQuery } from "#shared/kube/cluster-client.ts";
import { reasonToKeep } from "#shared/kube/engine/deletion-guards.ts";
import { foreignFailure } from "#shared/kube/engine/foreign-object.ts";
import { listMembers } from "#shared/kube/engine/list-members.ts";
import { endsTheCheck, failureOf, type ObjectFailure } from "#shared/kube/engine/object-failure.ts";
import { isDefinition, type ResolvedObject, resolveKind, resolveObjects } from "#shared/kube/engine/resolve-objects.ts";
import { UnavailableKind } from "#shared/kube/engine/unavailable-kind.ts";
import { holdsManifest } from "#shared/kube/holds-manifest.ts";
import { type KubeObject, type ManifestObject, objectIdOf, stringAt } from "#shared/kube/kube-object.ts";
import { isMember } from "#shared/kube/membership.ts";
import {
  formatGroupKind,
  type GroupKind,
  groupOf,
  type ObjectId,
  objectIdKey,
  versionOf,
} from "#shared/kube/object-id.ts";
import { isHook } from "#shared/kube/order-marks.ts";

/** Both sides without the fields that only the server writes. */
export interface SetDifference {
  readonly id: ObjectId;
  readonly how: "created" | "changed" | "deleted";
  readonly before?: KubeObject;
  /** For a new object: as in git. For a changed object: as the server would store it, including defaults. */
  readonly after?: KubeObject;
}

export interface SetDiff {
  readonly differences: readonly SetDifference[];
  /** Objects that the apply would refuse, and why. Their differences are unknown. */
  readonly refused: readonly { readonly id: ObjectId; readonly failure: ObjectFailure }[];
  /** Kinds that could not be read. Their objects that would be deleted are unknown. */
  readonly unread: readonly { readonly kind: string; readonly failure: ObjectFailure }[];
  /** Members that are not in git any more, and that stay. */
  readonly kept: readonly { readonly id: ObjectId; readonly why: string }[];
}

export interface DiffRequest {
  readonly objects: readonly ManifestObject[];
  readonly setId: string;
  readonly defaultNamespace?: string | undefined;
  /** Kinds that members can have in addition to those of the objects. */
  readonly groupKinds: readonly GroupKind[];
  readonly prune: boolean;
}

/** The limit of concurrent requests, for kinds and then for objects. */
const concurrency = 12;

/**
 * It costs one LIST for each kind, and one dry run for each object that may differ.
 * @throws KubeError when the cluster as a whole does not answer or refuses access.
 */
export async function diffSet(client: ClusterClient, request: DiffRequest): Promise<SetDiff> {
  const { objects, setId, groupKinds, prune } = request;
  const targets = await resolveObjects(client, objects, request);
  const ofTargets = targets.map(({ id, object }) => ({
    group: id.group,
    kind: id.kind,
    version: versionOf(object.apiVersion),
  }));
  const here = new Set(ofTargets.map(formatGroupKind));
  const kinds = [...ofTargets, ...groupKinds.filter((kind) => !here.has(formatGroupKind(kind)))];
  const { live, unread } = await membersOf(client, { kinds, setId, targets });
  const found = new DiffRun(client, request, live);
  // Hooks run and end, and objects with a mark in git are left alone.
  const lasting = targets.filter(({ object }) => !isHook(object) && !isLeftAlone(object));
  await runConcurrently(lasting, concurrency, (target) => found.check(target));
  const kept: SetDiff["kept"][number][] = [];
  const desired = new Set(targets.map(({ id }) => objectIdKey(id)));
  for (const [key, object] of live) {
    const id = objectIdOf(object);
    if (desired.has(key) || !isMember(object, setId)) continue;
    const why = prune ? reasonToKeep(id, object) : "prune: false";
    if (why === undefined) found.differences.push({ id, how: "deleted", before: asWritten(object) });
    else kept.push({ id, why });
  }
  return { differences: sorted(found.differences), refused: sorted(found.refused), kept: sorted(kept), unread };
}

interface MemberQuestion {
  /** In the versions of the manifests, so that both sides have the same version. */
  readonly kinds: readonly KindQuery[];
  readonly setId: string;
  readonly targets: readonly ResolvedObject[];
}

/** All objects with the set's label, by `objectIdKey`. */
async function membersOf(client: ClusterClient, { kinds, setId, targets }: MemberQuestion) {
  const live = new Map<string, KubeObject>();
  const unread: SetDiff["unread"][number][] = [];
  const distinct = [...new Map(kinds.map((kind) => [`${formatGroupKind(kind)} ${kind.version}`, kind])).values()];
  await runConcurrently(distinct, concurrency, async (kind) => {
    try {
      const found = await client.lookup(kind);
      if (found.outcome === "absent") return;
      if (found.outcome === "unavailable") throw new UnavailableKind(found.message);
      const namespaces = [...new Set(targets.filter((one) => isOfKind(one.id, kind)).map(({ id }) => id.namespace))];
      const items = await listMembers(client, found.info, { setId, namespaces, scope: "everywhere" });
      for (const item of items) live.set(objectIdKey(objectIdOf(item, found.info)), item);
    } catch (error) {
      const failure = error instanceof UnavailableKind ? error.failure : failureOf(error);
      if (endsTheCheck(failure)) throw error;
      unread.push({ kind: formatGroupKind(kind), failure });
    }
  });
  return { live, unread };
}

class DiffRun {
  readonly differences: SetDifference[] = [];
  readonly refused: { readonly id: ObjectId; readonly failure: ObjectFailure }[] = [];
  readonly #client: ClusterClient;
  readonly #request: DiffRequest;
  readonly #members: ReadonlyMap<string, KubeObject>;
  /** Namespaces and kinds that the set itself creates. Their objects cannot be requested before. */
  readonly #brings: ReadonlySet<string>;

  constructor(client: ClusterClient, request: DiffRequest, members: ReadonlyMap<string, KubeObject>) {
    this.#client = client;
    this.#request = request;
    this.#members = members;
    this.#brings = new Set(request.objects.flatMap(broughtBy));
  }

  async check({ id, object, invalid }: ResolvedObject): Promise<void> {
    if (invalid !== undefined) return void this.refused.push({ id, failure: invalid });
    const member = this.#members.get(objectIdKey(id));
    if (member !== undefined && (isKept(object, member) || holdsManifest(member, object))) return;
    try {
      await this.#ask(id, object, member);
    } catch (error) {
      const failure = failureOf(error);
      if (endsTheCheck(failure)) throw error;
      if (failure.class === "namespace" && this.#brings.has(namespaceKey(id.namespace))) this.#isNew(id, object);
      else this.refused.push({ id, failure });
    }
  }

  async #ask(id: ObjectId, object: ManifestObject, member: KubeObject | undefined): Promise<void> {
    const kind = await resolveKind(this.#client, object);
    if (!("plural" in kind)) {
      if (kind.reason === "NoMatch" && this.#brings.has(kindKey(id))) return this.#isNew(id, object);
      return void this.refused.push({ id, failure: kind });
    }
    const live = member ?? (await this.#client.get(kind, id));
    if (live !== undefined) {
      if (isKept(object, live)) return;
      const foreign = await foreignFailure(id, live, { setId: this.#request.setId, adopt: [] });
      if (foreign !== undefined) return void this.refused.push({ id, failure: foreign });
    }
    const answer = await this.#client.apply(kind, object, { dryRun: true });
    if (live === undefined) return this.#isNew(id, object);
    const [before, after] = [asWritten(live, kind), asWritten(answer.object, kind)];
    if (canonicalJson(before) === canonicalJson(after)) return;
    this.differences.push({ id, how: "changed", before, after });
  }

  #isNew(id: ObjectId, object: ManifestObject): void {
    this.differences.push({ id, how: "created", after: object });
  }
}

/** An apply would leave the object as it is. */
function isKept(object: ManifestObject, live: KubeObject): boolean {
  return isOnlyMade(object) || isLeftAlone(live);
}

/** Fields that only the server writes, or that change by themselves. */
const serverFields: ReadonlySet<string> = new Set([
  "managedFields",
  "resourceVersion",
  "generation",
  "uid",
  "creationTimestamp",
  "selfLink",
]);

function asWritten(object: KubeObject, kind?: Pick<KindInfo, "hasStatus">): KubeObject {
  const { metadata, status, ...rest } = object;
  const own = Object.entries(metadata ?? {}).filter(([name]) => !serverFields.has(name));
  const keepsStatus = status !== undefined && kind?.hasStatus === false;
  return { ...rest, metadata: Object.fromEntries(own), ...(keepsStatus ? { status } : {}) };
}

function broughtBy(object: ManifestObject): readonly string[] {
  if (object.kind === "Namespace" && groupOf(object.apiVersion) === "") return [namespaceKey(object.metadata.name)];
  if (!isDefinition(object)) return [];
  const group = stringAt(object, "spec", "group") ?? "";
  return [kindKey({ group, kind: stringAt(object, "spec", "names", "kind") ?? "" })];
}

function sorted<T extends { readonly id: ObjectId }>(items: readonly T[]): readonly T[] {
  return items.toSorted((a, b) => compareText(objectIdKey(a.id), objectIdKey(b.id)));
}

function namespaceKey(name: string): string {
  return `namespace ${name}`;
}

function kindKey({ group, kind }: GroupKind): string {
  return `kind ${group}/${kind}`;
}

function isOfKind(id: ObjectId, { group, kind }: GroupKind): boolean {
  return id.group === group && id.kind === kind;
}
