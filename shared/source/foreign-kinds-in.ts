/** Finds objects in a rendering that are for other tools, and describes them. */
import { excerpt } from "#shared/base/excerpt.ts";
import { foreignKindOf } from "#shared/kube/foreign-kinds.ts";
import { describeObject, groupOf } from "#shared/kube/object-id.ts";
import type { Manifest } from "#shared/source/manifests.ts";

/** One sentence for each kind of such objects. */
export function foreignKindsIn(manifests: readonly Manifest[]): readonly string[] {
  const found = new Map<string, Manifest[]>();
  for (const manifest of manifests) {
    const kind = `${groupOf(manifest.object.apiVersion)}/${manifest.object.kind}`;
    if (foreignKindOf(manifest.object) !== undefined) found.set(kind, [...(found.get(kind) ?? []), manifest]);
  }
  return [...found.values()].flatMap(([first, ...others]) => {
    const foreign = foreignKindOf(first?.object);
    if (first === undefined || foreign === undefined) return [];
    const more = others.length === 0 ? "" : ` and ${others.length} more`;
    return `${excerpt(describeObject(first.id))}${more}: this object is for ${foreign.tool}, and only ${foreign.tool} acts on it; to let Starling do it, write ${foreign.instead}`;
  });
}
