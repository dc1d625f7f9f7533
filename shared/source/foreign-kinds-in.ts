/** Objects for other tools in a rendering, in words. */
import { excerpt } from "#shared/base/excerpt.ts";
import { foreignKindOf } from "#shared/kube/foreign-kinds.ts";
import { describeObject, groupOf } from "#shared/kube/object-id.ts";
import type { Manifest } from "#shared/source/manifests.ts";

/** What is found of each kind, in words. */
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
    return `${excerpt(describeObject(first.id))}${more}: for ${foreign.tool}, which does what is said there where it runs; for Starling to do it, write ${foreign.instead}`;
  });
}
