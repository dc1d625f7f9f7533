/**
 * Objects that move from one template to another on the same clusters: they are taken over, and neither deleted nor
 * created.
 */

import { counted } from "#shared/base/counted.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import { objectIdOf } from "#shared/kube/kube-object.ts";
import type { ObjectDifference } from "#shared/kube/object-differences.ts";
import { describeObject, type ObjectId, objectIdKey } from "#shared/kube/object-id.ts";

/** One template on some clusters. */
export interface TemplateSides {
  /** Name of the Sync. */
  readonly sync: string;
  readonly before: readonly ManifestObject[];
  readonly after: readonly ManifestObject[];
}

/** An object that moves, with the Sync that has it now, or will have it. */
export type PlannedObject = ObjectDifference & { readonly movedFrom?: string; readonly movedTo?: string };

export interface Moves {
  /** The same differences; a moving object names the other Sync. */
  named(sync: string, objects: readonly ObjectDifference[]): readonly PlannedObject[];
  /** Objects that leave a template and that no other one has. */
  leaving(sides: TemplateSides): readonly ManifestObject[];
  /** Objects that several changing templates have; only one of these may apply the object. */
  readonly duplicates: readonly { readonly id: ObjectId; readonly syncs: readonly string[] }[];
}

/** @param templates - all templates of one owner that change on the same clusters. */
export function movesAmong(templates: readonly TemplateSides[]): Moves {
  const had = syncsByObject(templates, ({ before }) => before);
  const has = syncsByObject(templates, ({ after }) => after);
  const other = (found: Holders, sync: string, id: ObjectId) =>
    found.get(objectIdKey(id))?.syncs.find((one) => one !== sync);
  return {
    named: (sync, objects) =>
      objects.map((object) => {
        const movedTo = object.how === "deleted" ? other(has, sync, object.id) : undefined;
        if (movedTo !== undefined) return { ...object, movedTo };
        const movedFrom = object.how === "created" ? other(had, sync, object.id) : undefined;
        return movedFrom === undefined ? object : { ...object, movedFrom };
      }),
    leaving: ({ before, after }) => {
      const stays = new Set(after.map((object) => objectIdKey(objectIdOf(object))));
      return before.filter((object) => {
        const key = objectIdKey(objectIdOf(object));
        return !stays.has(key) && !has.has(key);
      });
    },
    duplicates: [...has.values()].filter(({ syncs }) => syncs.length > 1),
  };
}

type Holders = ReadonlyMap<string, { readonly id: ObjectId; readonly syncs: readonly string[] }>;

function syncsByObject(
  templates: readonly TemplateSides[],
  objectsOf: (sides: TemplateSides) => readonly ManifestObject[],
): Holders {
  const found = new Map<string, { readonly id: ObjectId; readonly syncs: string[] }>();
  for (const sides of templates) {
    for (const object of objectsOf(sides)) {
      const id = objectIdOf(object);
      const known = found.get(objectIdKey(id)) ?? { id, syncs: [] };
      if (!known.syncs.includes(sides.sync)) known.syncs.push(sides.sync);
      found.set(objectIdKey(id), known);
    }
  }
  return found;
}

/** `DuplicateObject: several templates have the same object on 3 clusters: ConfigMap shop/c in web and jobs; remove it from all but one`. */
export function duplicateText({ id, syncs }: Moves["duplicates"][number], clusters: number): string {
  return `DuplicateObject: several templates have the same object on ${counted(clusters, "cluster")}: ${describeObject(id)} in ${syncs.join(" and ")}; remove it from all but one`;
}
