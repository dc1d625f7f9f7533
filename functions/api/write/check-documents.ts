import { documentReference, referenceText } from "#functions/api/request/reference.ts";
import { type DocumentProblem, invalidDocuments } from "#functions/api/request/refusal.ts";
import { trustedRootProblems } from "#shared/adapters/signatures/trust-material.ts";
import { withoutServerFields } from "#shared/fleet/api/exported.ts";
import { type Document, parseDocument } from "#shared/fleet/kinds/document.ts";
import { semanticProblems } from "#shared/fleet/kinds/semantics.ts";

/**
 * Checks every document against its schema, and for rules that a schema cannot state.
 * @throws StarlingError `Invalid` with all problems of all documents: one wrong document refuses them all.
 */
export async function checkDocuments(values: readonly unknown[]): Promise<readonly Document[]> {
  const documents: Document[] = [];
  const problems: DocumentProblem[] = [];
  const seen = new Map<string, number>();
  for (const [index, value] of values.entries()) {
    const parsed = parseDocument(withoutServerFields(value));
    const object = referenceText(value);
    const name = object === undefined ? {} : { object };
    if (!parsed.ok) {
      for (const problem of parsed.problems) problems.push({ document: index, ...name, ...problem });
      continue;
    }
    const wrong = [...semanticProblems(parsed.document), ...(await trustedRootProblems(parsed.document))];
    for (const problem of wrong) problems.push({ document: index, ...name, ...problem });
    const key = JSON.stringify(documentReference(parsed.document));
    const first = seen.get(key);
    if (first !== undefined) {
      const message = `is the same object as document ${first + 1}; remove one of them`;
      problems.push({ document: index, ...name, field: "metadata.name", message });
    }
    seen.set(key, index);
    documents.push(parsed.document);
  }
  if (problems.length > 0) throw invalidDocuments(problems, values.length);
  return documents;
}
