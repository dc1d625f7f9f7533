import { isJsonObject, type Json, type JsonObject } from "#shared/base/json.ts";
import { pathSegmentProblem } from "#shared/base/path-segment.ts";

const texts = ["namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"] as const;
const writerTexts = ["manager", "operation", "apiVersion", "time", "subresource"] as const;
/** Longer than any name, uid or version of a server. The texts get into inventories and messages. */
const maxTextLength = 1_024;

/**
 * The problem of an object's metadata that no API server would write; undefined when nothing is. Later readers of
 * metadata may rely on this check. A uid may be missing, because objects of aggregated servers have none.
 */
export function shapeProblem(object: JsonObject): string | undefined {
  const { metadata } = object;
  if (!isJsonObject(metadata)) return `metadata is ${shapeNameOf(metadata)}, expected a map`;
  const { name, labels, annotations, finalizers, ownerReferences, managedFields } = metadata;
  if (typeof name !== "string" || name === "") return `metadata.name is ${shapeNameOf(name)}, expected a name`;
  const unfit = textProblem(name) ?? pathSegmentProblem(name);
  if (unfit !== undefined) return `metadata.name ${unfit}`;
  for (const member of texts) {
    const problem = isNone(metadata[member]) ? undefined : textProblem(metadata[member]);
    if (problem !== undefined) return `metadata.${member} ${problem}`;
  }
  for (const [member, value] of Object.entries({ labels, annotations })) {
    if (!isNone(value) && !isJsonObject(value)) return `metadata.${member} is ${shapeNameOf(value)}, expected a map`;
  }
  if (!isListOf(finalizers, (value) => typeof value === "string")) {
    return "metadata.finalizers is not a list of strings";
  }
  if (!isListOf(ownerReferences, isJsonObject)) return "metadata.ownerReferences is not a list of maps";
  return isListOf(managedFields, isWriter) ? undefined : "metadata.managedFields is not a list of entries";
}

function textProblem(value: Json | undefined): string | undefined {
  if (typeof value !== "string") return `is ${shapeNameOf(value)}, expected a text`;
  return value.length > maxTextLength
    ? `has ${value.length} characters, more than the limit of ${maxTextLength}`
    : undefined;
}

/** Go writes a missing value as null, or not at all. */
function isNone(value: Json | undefined): boolean {
  return value === undefined || value === null;
}

function isListOf(value: Json | undefined, isItem: (item: Json) => boolean): boolean {
  return isNone(value) || (Array.isArray(value) && value.every(isItem));
}

function isWriter(entry: Json): boolean {
  if (!isJsonObject(entry)) return false;
  const { fieldsV1 } = entry;
  if (!isNone(fieldsV1) && !isJsonObject(fieldsV1)) return false;
  return writerTexts.every((member) => isNone(entry[member]) || textProblem(entry[member]) === undefined);
}

export function shapeNameOf(value: Json | undefined): string {
  if (value === undefined) return "missing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "a map";
  return typeof value === "string" ? "a text" : `a ${typeof value === "bigint" ? "number" : typeof value}`;
}
