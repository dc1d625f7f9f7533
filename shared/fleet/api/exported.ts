import { isJsonObject } from "#shared/base/json.ts";

const serverMetadata = new Set(["uid", "generation", "resourceVersion", "creationTimestamp"]);

/**
 * A document as a user wrote it. An object from `get -o yaml` has a `metadata.uid`: its status, operations and the
 * metadata that Starling sets are left out, so that it can be applied again. Any other value is returned as it is, and
 * the schema refuses those fields.
 */
export function withoutServerFields(value: unknown): unknown {
  if (!isJsonObject(value) || !isJsonObject(value.metadata) || value.metadata.uid === undefined) return value;
  const { status: _status, operations: _operations, ...document } = value;
  const metadata = Object.fromEntries(Object.entries(value.metadata).filter(([key]) => !serverMetadata.has(key)));
  return { ...document, metadata };
}
