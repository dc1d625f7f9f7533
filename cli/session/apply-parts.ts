/** Splits documents into parts that the API accepts. Documents that others refer to come first. */
import type { CheckedDocument } from "#cli/session/read-documents.ts";
import { stringifyJson } from "#shared/base/json.ts";
import { writableKinds } from "#shared/fleet/kinds/document.ts";

/** Size of one request, below the API's limit of 1,000,000 bytes. */
const requestBytes = 900_000;
/** The API writes this many documents in a few seconds; a request may take half a minute. */
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
