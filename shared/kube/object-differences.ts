/** Compares two sets of objects field by field, in a form that users may see. The functions are pure. */
import { defined } from "#shared/base/defined.ts";
import { fieldPath } from "#shared/base/field-path.ts";
import { canonicalJson, isJsonObject, type Json, type JsonObject } from "#shared/base/json.ts";
import { compareText } from "#shared/base/text-order.ts";
import { type ManifestObject, objectIdOf } from "#shared/kube/kube-object.ts";
import { isSecret, maskedPair } from "#shared/kube/masked-object.ts";
import { type ObjectId, objectIdKey } from "#shared/kube/object-id.ts";

export interface FieldDifference {
  /** Such as `spec.template.spec.containers[web].image`. Items with names are identified by their names. */
  readonly field: string;
  /** Absent: the field does not exist. */
  readonly before?: Json;
  readonly after?: Json;
}

export interface ObjectDifference {
  readonly id: ObjectId;
  readonly how: "created" | "changed" | "deleted";
  /** For a changed object. */
  readonly fields: readonly FieldDifference[];
}

/** Compares by group, kind, namespace and name. Values of Secrets are `***`. */
export function objectDifferences(
  before: readonly ManifestObject[],
  after: readonly ManifestObject[],
): readonly ObjectDifference[] {
  const [old, now] = [byId(before), byId(after)];
  const ids = [...new Set([...old.keys(), ...now.keys()])].sort(compareText);
  return ids.flatMap((key): readonly ObjectDifference[] => {
    const [was, is] = [old.get(key), now.get(key)];
    if (was === undefined) return is === undefined ? [] : [{ id: objectIdOf(is), how: "created", fields: [] }];
    const id = objectIdOf(was);
    if (is === undefined) return [{ id, how: "deleted", fields: [] }];
    const fields = fieldDifferences(was, is);
    return fields.length === 0 ? [] : [{ id, how: "changed", fields }];
  });
}

/** The differences of one object. For a Secret, they show only that a value differs. */
function fieldDifferences(before: JsonObject, after: JsonObject): readonly FieldDifference[] {
  const [old, now] = isSecret(before) || isSecret(after) ? maskedPair(before, after) : [before, after];
  return differing(old, now, "");
}

function differing(before: Json | undefined, after: Json | undefined, field: string): readonly FieldDifference[] {
  if (isJsonObject(before) && isJsonObject(after)) {
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort(compareText);
    return names.flatMap((name) => differing(before[name], after[name], fieldPath(field, name)));
  }
  const named = Array.isArray(before) && Array.isArray(after) ? namedItems(before, after) : undefined;
  if (named !== undefined) {
    const [old, now] = named;
    const names = [...new Set([...old.keys(), ...now.keys()])];
    const found = names.flatMap((name) => differing(old.get(name), now.get(name), `${field}[${name}]`));
    if (found.length > 0) return found;
  }
  if (
    canonicalJson(before ?? null) === canonicalJson(after ?? null) &&
    (before === undefined) === (after === undefined)
  )
    return [];
  return [{ field, ...defined({ before, after }) }];
}

/** Both lists by the items' names, if every item has a unique name. */
function namedItems(before: readonly Json[], after: readonly Json[]) {
  const [old, now] = [byName(before), byName(after)];
  return old === undefined || now === undefined ? undefined : ([old, now] as const);
}

function byName(items: readonly Json[]): ReadonlyMap<string, Json> | undefined {
  const named = new Map<string, Json>();
  for (const item of items) {
    if (!isJsonObject(item) || typeof item.name !== "string" || named.has(item.name)) return undefined;
    named.set(item.name, item);
  }
  return named;
}

function byId(objects: readonly ManifestObject[]): ReadonlyMap<string, ManifestObject> {
  return new Map(objects.map((object) => [objectIdKey(objectIdOf(object)), object]));
}
