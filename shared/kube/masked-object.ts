/** Objects in a form that users may see. The values of a Secret are hidden everywhere in the object. */
import { canonicalJson, isJsonObject, type Json, type JsonObject } from "#shared/base/json.ts";
import { valueAt } from "#shared/kube/kube-object.ts";
import { groupOf } from "#shared/kube/object-id.ts";

const masked = "***";

/** kubectl stores the whole manifest in this annotation, including a Secret's values. */
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration";
/** All other members of a Secret are values, or are meant to be: `stringdata` is only misspelled. */
const plainMembers = new Set(["apiVersion", "kind", "metadata", "type", "immutable"]);

export function isSecret({ apiVersion, kind }: JsonObject): boolean {
  return kind === "Secret" && typeof apiVersion === "string" && groupOf(apiVersion) === "";
}

/** The object with `***` for each value of a Secret; other objects are unchanged. */
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

/** The values of a Secret, both encoded and decoded; nothing for other objects. */
export function secretTexts(object: JsonObject): readonly string[] {
  if (!isSecret(object)) return [];
  return hiddenMembers(object).flatMap(([member, values]) => {
    const texts = isJsonObject(values) ? Object.values(values).map(String) : [String(values)];
    return member === "data" ? [...texts, ...texts.map((text) => Buffer.from(text, "base64").toString())] : texts;
  });
}

/** Both sides of a changed Secret. An equal value is `***` on both sides; a different value names its side. */
export function maskedPair<T extends JsonObject>(before: T, after: T): readonly [T, T] {
  const [old, now] = [maskedObject(before), maskedObject(after)];
  const differ = (member: string, key: string) =>
    canonicalJson(valueAt(before, member, key) ?? null) !== canonicalJson(valueAt(after, member, key) ?? null);
  const marked = (object: T, side: string): T => {
    const members = hiddenMembers(object).flatMap(([member, values]) => {
      if (!isJsonObject(values)) return [];
      const shown = Object.keys(values).map((key) => [key, differ(member, key) ? `${masked} (${side})` : masked]);
      return [[member, Object.fromEntries(shown)] as const];
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
