/** Objects as people may be shown them: what a Secret holds is left out, wherever else it stands in the object. */
import { isJsonObject, type Json, type JsonObject } from "#shared/base/json.ts";
import { groupOf } from "#shared/kube/object-id.ts";

const masked = "***";

/** kubectl keeps the whole manifest in it, a Secret's values as well. */
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration";
const valueMembers = ["data", "stringData"] as const;

export function isSecret({ apiVersion, kind }: JsonObject): boolean {
  return kind === "Secret" && typeof apiVersion === "string" && groupOf(apiVersion) === "";
}

/** The same with `***` for each value of a Secret; any other object as it is. */
export function maskedObject<T extends JsonObject>(object: T): T {
  if (!isSecret(object)) return object;
  const members = valueMembers.flatMap((member) => {
    const values = object[member];
    return values === undefined ? [] : [[member, maskedValues(values)] as const];
  });
  const { metadata } = object;
  const annotations = isJsonObject(metadata) ? metadata.annotations : undefined;
  const hidden =
    isJsonObject(metadata) && isJsonObject(annotations) && lastApplied in annotations
      ? { metadata: { ...metadata, annotations: { ...annotations, [lastApplied]: masked } } }
      : {};
  return { ...object, ...Object.fromEntries(members), ...hidden };
}

function maskedValues(values: Json): Json {
  if (!isJsonObject(values)) return masked;
  return Object.fromEntries(Object.keys(values).map((key) => [key, masked]));
}
