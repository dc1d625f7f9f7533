/** Objects as people may be shown them: what a Secret holds is left out, wherever else it stands in the object. */
import { canonicalJson, isJsonObject, type Json, type JsonObject } from "#shared/base/json.ts";
import { valueAt } from "#shared/kube/kube-object.ts";
import { groupOf } from "#shared/kube/object-id.ts";

const masked = "***";

/** kubectl keeps the whole manifest in it, a Secret's values as well. */
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration";
/** All others of a Secret are values, or were meant to be: `stringdata` is only written wrong. */
const plainMembers = new Set(["apiVersion", "kind", "metadata", "type", "immutable"]);

export function isSecret({ apiVersion, kind }: JsonObject): boolean {
  return kind === "Secret" && typeof apiVersion === "string" && groupOf(apiVersion) === "";
}

/** The same with `***` for each value of a Secret; any other object as it is. */
export function maskedObject<T extends JsonObject>(object: T): T {
  if (!isSecret(object)) return object;
  const members = hiddenMembers(object).map(([member, values]) => [member, maskedValues(values)] as const);
  const { metadata } = object;
  const annotations = isJsonObject(metadata) ? metadata.annotations : undefined;
  const hidden =
    isJsonObject(metadata) && isJsonObject(annotations) && lastApplied in annotations
      ? { metadata: { ...metadata, annotations: { ...annotations, [lastApplied]: masked } } }
      : {};
  return { ...object, ...Object.fromEntries(members), ...hidden };
}

/** What a Secret's values are, as they are written and as they are meant; of any other object nothing. */
export function secretTexts(object: JsonObject): readonly string[] {
  if (!isSecret(object)) return [];
  return hiddenMembers(object).flatMap(([member, values]) => {
    const texts = isJsonObject(values) ? Object.values(values).map(String) : [String(values)];
    return member === "data" ? [...texts, ...texts.map((text) => Buffer.from(text, "base64").toString())] : texts;
  });
}

/** Both sides of a Secret that changed: an equal value is `***` in both, one that differs says which side it is of. */
export function maskedPair<T extends JsonObject>(before: T, after: T): readonly [T, T] {
  const [old, now] = [maskedObject(before), maskedObject(after)];
  const differ = (member: string, key: string) =>
    canonicalJson(valueAt(before, member, key) ?? null) !== canonicalJson(valueAt(after, member, key) ?? null);
  const marked = (object: T, side: string): T => {
    const members = hiddenMembers(object).flatMap(([member, values]) => {
      if (!isJsonObject(values)) return [];
      const told = Object.keys(values).map((key) => [key, differ(member, key) ? `${masked} (${side})` : masked]);
      return [[member, Object.fromEntries(told)] as const];
    });
    return { ...object, ...Object.fromEntries(members) };
  };
  return [marked(old, "before"), marked(now, "after")];
}

function hiddenMembers(object: JsonObject): readonly (readonly [string, Json])[] {
  return Object.entries(object).flatMap(([member, values]) =>
    values === undefined || plainMembers.has(member) ? [] : [[member, values] as const],
  );
}

function maskedValues(values: Json): Json {
  if (!isJsonObject(values)) return masked;
  return Object.fromEntries(Object.keys(values).map((key) => [key, masked]));
}
