import { defined } from "#shared/base/defined.ts";
import { type ManifestObject, objectIdOf } from "#shared/kube/kube-object.ts";
import { objectIdKey } from "#shared/kube/object-id.ts";

/**
 * The objects of `before`, each with the namespace that it has in `after`. An object that names the default namespace
 * and one that names none are the same object. Cluster-scoped objects name none in both lists.
 */
export function inTheSamePlace(
  before: readonly ManifestObject[],
  after: readonly ManifestObject[],
  defaultNamespace: string | undefined,
): readonly ManifestObject[] {
  const placeOf = (object: ManifestObject) => {
    const id = objectIdOf(object);
    return objectIdKey({ ...id, namespace: id.namespace === "" ? (defaultNamespace ?? "") : id.namespace });
  };
  const places = new Map(after.map((object) => [placeOf(object), object.metadata.namespace]));
  return before.map((object) => {
    const place = placeOf(object);
    const { namespace: was, ...metadata } = object.metadata;
    const namespace = places.get(place);
    if (!places.has(place) || namespace === was) return object;
    return { ...object, metadata: { ...metadata, ...defined({ namespace }) } };
  });
}
