import { documentReference, objectText } from "#functions/api/request/reference.ts";
import { invalidDocuments } from "#functions/api/request/refusal.ts";
import { includedSources } from "#shared/adapters/included-sources.ts";
import type { Document } from "#shared/fleet/kinds/document.ts";
import { includedIn } from "#shared/fleet/kinds/source.ts";
import { cycleProblems } from "#shared/fleet/sources/include-cycle.ts";
import type { Table } from "#shared/ports.ts";

/** @throws StarlingError `Invalid` when a Source would be a part of itself, through other documents or stored Sources. */
export async function refuseCycles(table: Table, documents: readonly Document[]): Promise<void> {
  const named = documents.flatMap((document) =>
    document.kind === "Source"
      ? includedIn(document.spec).map((name) => ({ namespace: document.metadata.namespace, name }))
      : [],
  );
  if (named.length === 0) return;
  const stored = new Map<string, readonly string[]>();
  for (const [namespace, all] of Map.groupBy(named, (each) => each.namespace)) {
    const names = all.map(({ name }) => name);
    for (const row of (await includedSources(table, namespace, names)).values()) {
      stored.set(`${namespace}/${row.name}`, includedIn(row.spec));
    }
  }
  const problems = cycleProblems(documents, (source) => stored.get(source) ?? []).map((problem) => {
    const document = documents[problem.document];
    return { ...problem, ...(document === undefined ? {} : { object: objectText(documentReference(document)) }) };
  });
  if (problems.length > 0) throw invalidDocuments(problems, documents.length);
}
