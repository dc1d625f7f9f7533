/** Objects that a plan would delete, and guards that hold single objects back: pure. */
import { counted } from "#shared/base/counted.ts";
import { compareText } from "#shared/base/text-order.ts";
import { reasonToKeep } from "#shared/kube/engine/deletion-guards.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import { objectIdOf } from "#shared/kube/kube-object.ts";
import { describeObject, type ObjectId, objectIdKey } from "#shared/kube/object-id.ts";
import { isHook } from "#shared/kube/order-marks.ts";

/**
 * - `kept`: the object stays, whatever git has; `waits`: it is deleted when nothing is left that it would delete;
 * - `unasked`: it deletes objects that git does not have, and nobody is asked.
 */
export interface ObjectGuard {
  readonly id: ObjectId;
  readonly effect: "kept" | "waits" | "unasked";
  /** Number of clusters that lose it. */
  readonly clusters: number;
  readonly why: string;
}

export interface Deletions {
  /** Number of objects on clusters that would be deleted; those that stay are not counted. */
  readonly objects: number;
  readonly clusters: number;
  readonly guards: readonly ObjectGuard[];
}

/** Objects of a rendering on clusters that would lose them. */
export interface Leaving {
  readonly clusters: readonly string[];
  readonly objects: readonly ManifestObject[];
  readonly prune: boolean;
}

export function deletionsOf(leaving: readonly Leaving[]): Deletions {
  const guards = new Map<string, ObjectGuard>();
  const clusters = new Set<string>();
  let objects = 0;
  for (const { clusters: on, objects: gone, prune } of leaving) {
    for (const object of gone.filter((one) => !isHook(one))) {
      const guard = prune ? guardOf(object) : undefined;
      if (guard !== undefined) note(guards, { ...guard, id: objectIdOf(object), clusters: on.length });
      if (!prune || guard?.effect === "kept") continue;
      objects += on.length;
      for (const cluster of on) clusters.add(cluster);
    }
  }
  const sorted = [...guards.values()].sort(
    (a, b) => b.clusters - a.clusters || compareText(objectIdKey(a.id), objectIdKey(b.id)),
  );
  return { objects, clusters: clusters.size, guards: sorted };
}

function note(guards: Map<string, ObjectGuard>, guard: ObjectGuard): void {
  const key = `${guard.effect} ${objectIdKey(guard.id)} ${guard.why}`;
  guards.set(key, { ...guard, clusters: (guards.get(key)?.clusters ?? 0) + guard.clusters });
}

/** The rules of `pruneSet` and its guards; by the assigned marks, because a plan asks no cluster. */
function guardOf(object: ManifestObject): Pick<ObjectGuard, "effect" | "why"> | undefined {
  const id = objectIdOf(object);
  const why = reasonToKeep(id, object);
  return why === undefined ? byKind[`${id.group}/${id.kind}`] : { effect: "kept", why };
}

/** The warning about the deletion of an object of this kind; undefined for most. */
export function deletionWarning({ group, kind }: ObjectId): string | undefined {
  return byKind[`${group}/${kind}`]?.why;
}

const byKind: Readonly<Record<string, Pick<ObjectGuard, "effect" | "why">>> = {
  "/Namespace": { effect: "waits", why: "it goes when nothing is left in it" },
  "apiextensions.k8s.io/CustomResourceDefinition": { effect: "waits", why: "it goes when no object of it is left" },
  "/PersistentVolumeClaim": {
    effect: "unasked",
    why: "the data of its volume is deleted with it, if the reclaim policy of its class is Delete",
  },
};

/** `Namespace shop on 3 clusters: it goes when ...`. */
export function guardText({ id, clusters, why }: ObjectGuard): string {
  return `${describeObject(id)} on ${counted(clusters, "cluster")}: ${why}`;
}
