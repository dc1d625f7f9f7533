import { sha256 } from "#shared/domain/digest.ts";
import { canonicalJson, isJsonObject, parseJson } from "#shared/domain/json.ts";
import type { ManifestObject } from "#shared/domain/kube-object.ts";

/** The schema of the stored form; a newer one is refused, not guessed. */
const RENDERING_SCHEMA = 1;

export interface EncodedRendering {
  /** `sha256:<hex>` of the bytes: equal objects in equal order, equal digest. */
  readonly digest: string;
  readonly bytes: Uint8Array;
}

/** The stored form of what one distinct input renders to: the blob at `blobKeys.rendering(digest)`. */
export function encodeRendering(objects: readonly ManifestObject[]): EncodedRendering {
  const bytes = new TextEncoder().encode(canonicalJson({ schema: RENDERING_SCHEMA, objects }));
  return { digest: sha256(bytes), bytes };
}

/**
 * The objects of a stored rendering, checked against the digest it was assigned by.
 * @throws Error when the bytes are others than those that were rendered, or of a newer schema.
 */
export function decodeRendering(bytes: Uint8Array, digest: string): readonly ManifestObject[] {
  const actual = sha256(bytes);
  if (actual !== digest) throw new Error(`the rendering ${digest} was damaged in storage: its content is ${actual}`);
  const stored = parseJson(new TextDecoder().decode(bytes));
  if (!isJsonObject(stored) || stored.schema !== RENDERING_SCHEMA || !Array.isArray(stored.objects)) {
    throw new Error(`the rendering ${digest} has another schema than ${RENDERING_SCHEMA}; deploy the newer version`);
  }
  return stored.objects as readonly ManifestObject[];
}
