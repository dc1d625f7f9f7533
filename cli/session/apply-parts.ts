/** Documents as the API takes them: in parts of a size that it bears, what others refer to first. */
import type { CheckedDocument } from "#cli/session/read-documents.ts";
import { stringifyJson } from "#shared/base/json.ts";
import { writableKinds } from "#shared/fleet/kinds/document.ts";

/** One request holds so much of the API's 1,000,000 bytes. */
const requestBytes = 900_000;
/** So many are written in a few seconds of the half minute that a request has. */
const requestDocuments = 250;

export type ApplyPart = readonly CheckedDocument[];

export function partsOf(documents: readonly CheckedDocument[]): readonly ApplyPart[] {
  const rank = ({ document }: CheckedDocument): number => writableKinds.indexOf(document.kind);
  const ordered = documents.toSorted((a, b) => rank(a) - rank(b));
  const parts: CheckedDocument[][] = [];
  let bytes = 0;
  for (const document of ordered) {
    const size = Buffer.byteLength(stringifyJson(document.document)) + 1;
    const last = parts.at(-1);
    if (last !== undefined && last.length < requestDocuments && bytes + size <= requestBytes) {
      last.push(document);
      bytes += size;
      continue;
    }
    parts.push([document]);
    bytes = size;
  }
  return parts;
}
