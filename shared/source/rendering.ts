import { sha256 } from "#shared/base/digest.ts";
import { canonicalJson, type Json, parseJson } from "#shared/base/json.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import type { ApplyEvent } from "#shared/kube/order-marks.ts";

/**
 * The objects that a cluster gets at the first install and at every later apply. Both are the same list when nothing
 * differs.
 */
export type Rendering = Readonly<Record<ApplyEvent, readonly ManifestObject[]>>;

export interface EncodedRendering {
  /** `sha256:<hex>` of the bytes. Equal objects in equal order have an equal digest. */
  readonly digest: string;
  readonly bytes: Uint8Array;
}

/**
 * Encodes a rendering for storage at `blobKeys.rendering(digest)`; `decodeRendering` reads it. The form is a JSON list
 * of the objects. When an upgrade has other objects than an install, it holds the common objects and the objects of
 * each event.
 */
export function encodeRendering(
  install: readonly ManifestObject[],
  upgrade: readonly ManifestObject[] = install,
): EncodedRendering {
  const bytes = new TextEncoder().encode(canonicalJson(upgrade === install ? install : inParts({ install, upgrade })));
  return { digest: sha256(bytes), bytes };
}

interface Parts extends Rendering {
  readonly both: readonly ManifestObject[];
}

function inParts({ install, upgrade }: Rendering): readonly ManifestObject[] | Parts {
  const texts = new Set(install.map((object) => canonicalJson(object)));
  const both = new Set(upgrade.map((object) => canonicalJson(object)).filter((text) => texts.has(text)));
  const isOwn = (object: ManifestObject) => !both.has(canonicalJson(object));
  const own = { install: install.filter(isOwn), upgrade: upgrade.filter(isOwn) };
  if (own.install.length === 0 && own.upgrade.length === 0) return install;
  return { both: install.filter((object) => !isOwn(object)), ...own };
}

/** @param text - the bytes, whose digest was checked. */
export function decodeRendering(text: string): Rendering {
  const stored = parseJson(text) satisfies Json as unknown as readonly ManifestObject[] | Parts;
  if (!("both" in stored)) return { install: stored, upgrade: stored };
  const { both, install, upgrade } = stored;
  return { install: [...both, ...install], upgrade: [...both, ...upgrade] };
}

/** Everything that a cluster can have of the rendering. An object that differs at an upgrade appears twice. */
export function everyObject({ install, upgrade }: Rendering): readonly ManifestObject[] {
  if (install === upgrade) return install;
  const known = new Set(install);
  return [...install, ...upgrade.filter((object) => !known.has(object))];
}
