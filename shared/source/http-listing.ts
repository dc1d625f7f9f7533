/** Asks a server of files for a listing only if it has changed (RFC 9110, conditional requests). */
import { defined } from "#shared/base/defined.ts";

/** A version of a listing, by what its server calls it. */
export interface SourceListing {
  /** The revision that was chosen in it. */
  readonly revision: string;
  readonly etag?: string;
  /** As the server wrote it. */
  readonly lastModified?: string;
}

const etagPattern = /^(?:W\/)?"[\x21\x23-\x7e]{1,200}"$/;
const datePattern = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;
/** A file may change twice in the second that a date names. */
const settledMs = 60_000;

/**
 * Names this answer for a later question.
 * @returns undefined when the server says nothing that can be trusted to change with the file.
 */
export function listingOf(
  revision: string,
  { headers }: { readonly headers: Readonly<Record<string, string>> },
): SourceListing | undefined {
  const { etag, date, "last-modified": lastModified } = headers;
  if (etag !== undefined && etagPattern.test(etag)) return { revision, etag };
  if (lastModified === undefined || !datePattern.test(lastModified)) return undefined;
  const age = Date.parse(date ?? "") - Date.parse(lastModified);
  return age >= settledMs ? { revision, lastModified } : undefined;
}

/** The headers of a question that is answered with 304 while the listing is this one. */
export function unlessUnchanged({ etag, lastModified }: SourceListing): Readonly<Record<string, string>> {
  return defined({ "if-none-match": etag, "if-modified-since": etag === undefined ? lastModified : undefined });
}
