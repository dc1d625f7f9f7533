/** Messages that are signed and readable: `gpg --clearsign` (RFC 9580, 7). */

export interface ClearSigned {
  /** The signed lines, without what a mail could have changed: escapes, and spaces at the end of a line. */
  readonly text: string;
  /** With its first and last line. */
  readonly armour: string;
}

const begin = "-----BEGIN PGP SIGNED MESSAGE-----";
const signatureBegin = "-----BEGIN PGP SIGNATURE-----";
const signatureEnd = "-----END PGP SIGNATURE-----";

/**
 * Reads a message that begins and ends with its markers: nothing beside the signed lines is read as a part of them.
 * @returns undefined when it has another form.
 */
export function readClearSigned(message: string): ClearSigned | undefined {
  const lines = message.trim().split(/\r?\n/);
  const bodyAt = lines.indexOf("") + 1;
  const signatureAt = lines.indexOf(signatureBegin);
  const headers = lines.slice(1, bodyAt - 1);
  if (lines[0] !== begin || lines.at(-1) !== signatureEnd || bodyAt === 0 || signatureAt < bodyAt) return undefined;
  if (headers.some((header) => !header.startsWith("Hash: "))) return undefined;
  const body = lines.slice(bodyAt, signatureAt);
  // A line of the message that begins with a hyphen is escaped.
  if (body.some((line) => line.startsWith("-") && !line.startsWith("- "))) return undefined;
  const text = body.map((line) => line.replace(/^- /, "").replace(/[ \t]+$/, "")).join("\n");
  return { text, armour: `${lines.slice(signatureAt).join("\n")}\n` };
}
