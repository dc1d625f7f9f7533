import type { Document, FieldProblem } from "#shared/fleet/kinds/document.ts";
import { includedIn } from "#shared/fleet/kinds/source.ts";

/** @returns the names from the Source back to itself, when it includes itself, directly or through others. */
export function includeCycle(
  start: string,
  includesOf: (name: string) => readonly string[],
): readonly string[] | undefined {
  const seen = new Set<string>();
  const ways: (readonly string[])[] = [[start]];
  for (let way = ways.pop(); way !== undefined; way = ways.pop()) {
    for (const name of includesOf(way.at(-1) ?? start)) {
      if (name === start) return [...way, start];
      if (seen.has(name)) continue;
      seen.add(name);
      ways.push([...way, name]);
    }
  }
  return undefined;
}

/** @param cycle - of `includeCycle`. */
export function cycleText(cycle: readonly string[]): string {
  const way = cycle.join(" includes ");
  return `${way}: a Source cannot be a part of itself; take one of them out of spec.include`;
}

/**
 * Sources of the documents that include themselves through others.
 * @param stored - the names that a Source without a document includes; it takes `NAMESPACE/NAME`.
 */
export function cycleProblems(
  documents: readonly Document[],
  stored: (source: string) => readonly string[] = () => [],
): readonly (FieldProblem & { readonly document: number })[] {
  const written = new Map<string, readonly string[]>();
  for (const document of documents) {
    if (document.kind !== "Source") continue;
    const { namespace, name } = document.metadata;
    written.set(`${namespace}/${name}`, includedIn(document.spec));
  }
  return documents.flatMap((document, index) => {
    if (document.kind !== "Source" || document.spec.include === undefined) return [];
    const { namespace, name } = document.metadata;
    const at = (source: string) => `${namespace}/${source}`;
    const cycle = includeCycle(name, (source) => written.get(at(source)) ?? stored(at(source)));
    // The schema's checks name a Source that includes itself.
    if (cycle === undefined || includedIn(document.spec).includes(name)) return [];
    return [{ document: index, field: "spec.include", message: `leads back to the Source: ${cycleText(cycle)}` }];
  });
}
