import { sha256 } from "#shared/base/digest.ts";
import { canonicalJson } from "#shared/base/json.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";

export interface EncodedRendering {
  /** `sha256:<hex>` of the bytes: equal objects in equal order, equal digest. */
  readonly digest: string;
  readonly bytes: Uint8Array;
}

/**
 * The stored form of what one distinct input renders to: a JSON list of the objects, read back with `parseJson` from the
 * blob at `blobKeys.rendering(digest)`.
 */
export function encodeRendering(objects: readonly ManifestObject[]): EncodedRendering {
  const bytes = new TextEncoder().encode(canonicalJson(objects));
  return { digest: sha256(bytes), bytes };
}
