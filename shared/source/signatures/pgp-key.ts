/** The form of an armoured OpenPGP public key; what it says is read when a signature is verified. */
import { privateKeyProblem } from "#shared/source/signatures/private-key-problem.ts";

const begin = "-----BEGIN PGP PUBLIC KEY BLOCK-----";
const end = "-----END PGP PUBLIC KEY BLOCK-----";
const publicKeyTag = 6;

export function isPgpKey(text: string): boolean {
  return text.trimStart().startsWith("-----BEGIN PGP");
}

/** @returns what is wrong with it, as a part of a message. */
export function pgpKeyProblem(text: string): string | undefined {
  const trimmed = text.trim();
  if (trimmed.includes("PRIVATE KEY")) return privateKeyProblem;
  if (!trimmed.startsWith(begin)) return `is no public key; expected what gpg --armor --export prints: ${begin}`;
  if (trimmed.indexOf(end) !== trimmed.length - end.length) {
    return "is not one whole public key; give each block of gpg --armor --export as an item of its own";
  }
  const lines = trimmed.slice(begin.length, -end.length).split(/\r?\n/);
  const body = lines.slice(lines.indexOf("", 1) + 1).filter((line) => line !== "" && !line.startsWith("="));
  const encoded = body.join("");
  const bytes = Buffer.from(encoded, "base64");
  const isWhole = bytes.toString("base64").replace(/=+$/, "") === encoded.replace(/=+$/, "");
  if (!isWhole || firstTag(bytes) !== publicKeyTag) return "is damaged: copy all that gpg --armor --export prints";
  return undefined;
}

/** The type of the first packet (RFC 9580, 4.2). */
function firstTag([first = 0]: Buffer): number | undefined {
  const isPacket = (first & 0x80) !== 0;
  if (!isPacket) return undefined;
  const isNewForm = (first & 0x40) !== 0;
  return isNewForm ? first & 0x3f : (first & 0x3c) >> 2;
}
