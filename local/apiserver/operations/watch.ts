import type { Change } from "#apiserver/cluster-store.ts";
import { type Json, type JsonObject, stringifyJson } from "#apiserver/json.ts";
import { readStored } from "#apiserver/kinds/custom-kind.ts";
import { apiVersionOf, type Kind } from "#apiserver/kinds/kind.ts";
import { stringAt } from "#apiserver/object-fields.ts";
import { metadataOf, withMetadata } from "#apiserver/operations/object-meta.ts";
import { present, type ReadRequest, selection } from "#apiserver/operations/read-operations.ts";
import { resourceOf } from "#apiserver/operations/write-operations.ts";
import { type FieldError, fieldErrors, internalError, invalid, StatusError } from "#apiserver/status-error.ts";

/** The receiver of a watch's events. Each line is one JSON event. */
export interface EventSink {
  write(line: string): void;
  end(): void;
}

/** Refuses an invalid watch. @throws StatusError 400, 422 or 500. */
export function checkWatch(kind: Kind, query: URLSearchParams): void {
  const initial = query.get("sendInitialEvents") !== null;
  const match = query.get("resourceVersionMatch") ?? "";
  const field = "resourceVersionMatch";
  const errors: FieldError[] = [];
  if (initial && match !== "NotOlderThan") {
    errors.push(
      fieldErrors.forbidden(field, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
    );
  }
  if (!initial && match !== "") {
    const detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
    errors.push(fieldErrors.forbidden(field, detail));
  }
  if (errors.length > 0) throw invalid({ group: "meta.k8s.io", kind: "ListOptions", name: "" }, errors);
  selection(kind, query);
  const version = query.get("resourceVersion") ?? "";
  if (/^\d*$/.test(version)) return;
  const quoted = JSON.stringify(version);
  throw internalError(
    `resourceVersion: Invalid value: ${quoted}: strconv.ParseUint: parsing ${quoted}: invalid syntax`,
  );
}

/** An object that leaves the selection is reported in its previous state, with the resourceVersion of the change. */
function asItWas({ previous, object }: Change): JsonObject {
  return withMetadata(previous ?? object, { resourceVersion: metadataOf(object).resourceVersion });
}

const defaultTimeoutSeconds = 1_800;
const bookmarkEveryMs = 60_000;

/**
 * Streams the changes of a collection. Without a resourceVersion it sends the existing objects first. @returns a
 * function that stops the stream. @throws StatusError 400 before the stream begins.
 */
export function watchObjects(request: ReadRequest, sink: EventSink): () => void {
  const { cluster, kind, query, namespace } = request;
  const resource = resourceOf(kind);
  const selected = selection(kind, query);
  const version = Number(query.get("resourceVersion") ?? 0);
  const given = query.get("resourceVersion") ?? "";
  const initial = query.get("sendInitialEvents") === "true";

  function inScope(object: JsonObject | undefined): object is JsonObject {
    if (object === undefined) return false;
    return (namespace === undefined || stringAt(object, "metadata", "namespace") === namespace) && selected(object);
  }
  function send(type: string, object: JsonObject): void {
    sink.write(`${stringifyJson({ type, object: presented(object) })}\n`);
  }
  function presented(object: JsonObject): Json {
    return present(request, readStored(kind, object));
  }
  function follow(change: Change): void {
    if (change.resource !== resource) return;
    const before = inScope(change.previous);
    const after = change.type !== "DELETED" && inScope(change.object);
    if (after) send(before ? "MODIFIED" : "ADDED", change.object);
    else if (before) send("DELETED", asItWas(change));
  }
  function bookmark(extra: JsonObject = {}): void {
    const metadata = { resourceVersion: String(cluster.store.revision), ...extra };
    sink.write(
      `${stringifyJson({ type: "BOOKMARK", object: { kind: kind.kind, apiVersion: apiVersionOf(kind), metadata } })}\n`,
    );
  }

  if (given !== "" && given !== "0" && version < cluster.store.oldestRevision) {
    const gone = new StatusError(410, `too old resource version: ${version} (${cluster.store.oldestRevision})`, {
      reason: "Expired",
    });
    sink.write(`${stringifyJson({ type: "ERROR", object: gone.body() })}\n`);
    sink.end();
    return () => undefined;
  }
  if (given === "" || given === "0" || initial) {
    for (const object of cluster.store.list(resource, namespace)) if (selected(object)) send("ADDED", object);
    if (initial) bookmark({ annotations: { "k8s.io/initial-events-end": "true" } });
  } else {
    for (const change of cluster.store.changesSince(version)) follow(change);
  }
  const stopListening = cluster.store.onChange(follow);
  const seconds = Number(query.get("timeoutSeconds") ?? "") || defaultTimeoutSeconds;
  const timeout = setTimeout(end, seconds * 1_000);
  timeout.unref();
  const bookmarks = query.get("allowWatchBookmarks") === "true" ? setInterval(bookmark, bookmarkEveryMs) : undefined;
  bookmarks?.unref();
  function stop(): void {
    stopListening();
    clearTimeout(timeout);
    clearInterval(bookmarks);
  }
  function end(): void {
    stop();
    sink.end();
  }
  return stop;
}
