import { createHash, createPublicKey, type KeyObject } from "node:crypto";
import { privateKeyProblem } from "#shared/source/signatures/private-key-problem.ts";
import { WireReader } from "#shared/source/signatures/wire-reader.ts";

export interface SshPublicKey {
  /** `ssh-ed25519`, `ssh-rsa`, `ecdsa-sha2-nistp256` and so on. */
  readonly type: string;
  /** The key in the wire format: equal keys have equal bytes. */
  readonly wire: Buffer;
  readonly key: KeyObject;
  /** As `ssh-keygen -l` prints it: `SHA256:…`. */
  readonly fingerprint: string;
  /** The rest of the line. */
  readonly comment: string;
}

const minRsaBits = 2048;
const curves: Readonly<Record<string, { readonly name: string; readonly bytes: number }>> = {
  "ecdsa-sha2-nistp256": { name: "P-256", bytes: 32 },
  "ecdsa-sha2-nistp384": { name: "P-384", bytes: 48 },
  "ecdsa-sha2-nistp521": { name: "P-521", bytes: 66 },
};
const uncompressedPoint = 4;

/** Bytes of each of the two numbers of an ECDSA signature; undefined for other types. */
export function curveBytes(type: string): number | undefined {
  return curves[type]?.bytes;
}

/**
 * Reads a public key as a line of an SSH file: `ssh-ed25519 AAAA… comment`.
 * @returns what is wrong with it, as a text.
 */
export function parseSshKey(line: string): SshPublicKey | string {
  if (line.includes("PRIVATE KEY")) return privateKeyProblem;
  const [type = "", encoded = "", ...words] = line.trim().split(/\s+/);
  if (type.startsWith("sk-")) return "is a key of a security key, which Starling cannot verify; use another key";
  if (type.includes("-cert-")) return "is a certificate, which Starling cannot verify; give the key itself";
  if (type !== "ssh-ed25519" && type !== "ssh-rsa" && curves[type] === undefined) {
    return "is no public key; expected a line as in id_ed25519.pub: ssh-ed25519 AAAA…, or what gpg --armor --export prints";
  }
  const wire = Buffer.from(encoded, "base64");
  if (wire.toString("base64").replace(/=+$/, "") !== encoded.replace(/=+$/, "")) return damaged;
  try {
    const key = readWireKey(type, wire);
    return typeof key === "string" ? key : { ...key, comment: words.join(" ") };
  } catch {
    return damaged;
  }
}

const damaged = "is damaged: copy the whole line of the .pub file";

function readWireKey(type: string, wire: Buffer): Omit<SshPublicKey, "comment"> | string {
  const reader = new WireReader(wire);
  if (reader.text() !== type) return damaged;
  const key = readKey(type, reader);
  if (!reader.isAtEnd) return damaged;
  const { modulusLength = minRsaBits } = key.asymmetricKeyDetails ?? {};
  if (modulusLength < minRsaBits) return `has ${modulusLength} bits; expected at least ${minRsaBits}`;
  const digest = createHash("sha256").update(wire).digest("base64").replace(/=+$/, "");
  return { type, wire, key, fingerprint: `SHA256:${digest}` };
}

function readKey(type: string, reader: WireReader): KeyObject {
  const ofJwk = (key: object) => createPublicKey({ format: "jwk", key: { ...key } });
  const encoded = (bytes: Buffer) => bytes.toString("base64url");
  if (type === "ssh-ed25519") return ofJwk({ kty: "OKP", crv: "Ed25519", x: encoded(reader.bytes()) });
  if (type === "ssh-rsa") {
    const e = encoded(reader.integer());
    return ofJwk({ kty: "RSA", e, n: encoded(reader.integer()) });
  }
  // The curve stands in the key once more.
  reader.bytes();
  const point = reader.bytes();
  const size = curves[type]?.bytes ?? 0;
  if (point[0] !== uncompressedPoint || point.length !== 1 + 2 * size) throw new RangeError("it is no point");
  const [x, y] = [encoded(point.subarray(1, 1 + size)), encoded(point.subarray(1 + size))];
  return ofJwk({ kty: "EC", crv: curves[type]?.name, x, y });
}
