/** Signatures in raw objects of git, and the bytes that they sign. */

export interface SignedObject {
  readonly content: Buffer;
  /** With its first and last line: `-----BEGIN SSH SIGNATURE-----`. */
  readonly armour: string;
}

const header = "gpgsig ";

/**
 * A commit has its signature in a header, and signs everything else.
 * @returns undefined when it is not signed.
 */
export function signedCommit(commit: Buffer): SignedObject | undefined {
  // Latin-1 keeps every byte.
  const text = commit.toString("latin1");
  const end = text.indexOf("\n\n");
  const headers = text.slice(0, end < 0 ? text.length : end + 1);
  const start = headers.startsWith(header) ? 0 : headers.indexOf(`\n${header}`) + 1;
  if (start === 0 && !headers.startsWith(header)) return undefined;
  const [lines = ""] = /^[^\n]*\n(?: [^\n]*\n)*/.exec(headers.slice(start)) ?? [];
  const content = text.slice(0, start) + text.slice(start + lines.length);
  return { content: Buffer.from(content, "latin1"), armour: lines.slice(header.length).replaceAll("\n ", "\n") };
}

/**
 * A tag ends with its signature, and signs everything before. The last signature counts, as in git.
 * @returns undefined when it is not signed.
 */
export function signedTag(tag: Buffer): SignedObject | undefined {
  const text = tag.toString("latin1");
  const starts = [...text.matchAll(/(?<![^\n])-----BEGIN [A-Z ]+-----(?=\n)/g)];
  const start = starts.at(-1)?.index;
  if (start === undefined) return undefined;
  return { content: Buffer.from(text.slice(0, start), "latin1"), armour: text.slice(start) };
}

/** The name that a tag says in its own, signed content. */
export function tagName(tag: Buffer): string {
  const text = tag.toString("utf8");
  const end = text.indexOf("\n\n");
  return /(?<![^\n])tag ([^\n]*)/.exec(text.slice(0, end < 0 ? text.length : end))?.[1] ?? "";
}
