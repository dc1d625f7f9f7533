import type { TransportAnswer } from "#shared/adapters/kube/kube-transport.ts";
import { defined } from "#shared/base/defined.ts";
import { isJsonObject, type Json, type JsonObject, parseJson } from "#shared/base/json.ts";
import { pathSegmentProblem } from "#shared/base/path-segment.ts";
import type { ErrorCause } from "#shared/kube/apply-error.ts";
import { KubeError, type KubeRequestSummary } from "#shared/kube/kube-error.ts";
import { listAt, stringAt } from "#shared/kube/kube-object.ts";

const warningHeader = /299 \S+ "((?:[^"\\]|\\.)*)"/g;

/** The texts of the Warning headers, without repetitions. */
export function headerWarnings(answer: TransportAnswer): readonly string[] {
  const { warning } = answer.headers;
  if (warning === undefined) return [];
  const warnings = [...String(warning).matchAll(warningHeader)].map(([, quoted = ""]) =>
    quoted.replaceAll(/\\(.)/g, "$1"),
  );
  return [...new Set(warnings)];
}

/** Converts an answer outside 2xx to an error. */
export function errorFrom(summary: KubeRequestSummary, answer: TransportAnswer): KubeError {
  const body = readStatus(answer.text);
  const reason = stringAt(body, "reason");
  const retryAfter = Number(answer.headers["retry-after"]);
  return new KubeError(
    summary,
    {
      status: answer.status,
      message: stringAt(body, "message") ?? "",
      causes: listAt(body, "details", "causes").map(readCause),
      ...defined({ reason }),
    },
    Number.isFinite(retryAfter) && retryAfter > 0 ? { retryAfterSeconds: retryAfter } : {},
  );
}

function readCause(cause: Json): ErrorCause {
  return {
    reason: stringAt(cause, "reason") ?? "",
    field: stringAt(cause, "field") ?? "",
    message: stringAt(cause, "message") ?? "",
  };
}

/**
 * Whether the answer to a DELETE says that the object with this uid is gone. An object that waits for a finalizer, a
 * grace period or its contents is answered with the object. Some kinds that are gone are answered in the same way, for example Services (seen
 * on kube-apiserver 1.36.2). Servers of other APIs may answer anything.
 */
export function saysGone(text: string, uid: string): boolean {
  const body = readStatus(text);
  return (
    stringAt(body, "kind") === "Status" &&
    stringAt(body, "status") === "Success" &&
    stringAt(body, "details", "uid") === uid
  );
}

/** A Status, or nothing. Proxies answer with HTML, and the server itself answers unknown paths with plain text. */
function readStatus(text: string): Json {
  try {
    return parseJson(text);
  } catch {
    return {};
  }
}

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
