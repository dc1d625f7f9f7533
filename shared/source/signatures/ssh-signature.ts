import { createHash, verify } from "node:crypto";
import { curveBytes, type SshPublicKey } from "#shared/source/signatures/ssh-key.ts";
import { WireReader, wireBytes } from "#shared/source/signatures/wire-reader.ts";

/** The beginning of every SSH signature (PROTOCOL.sshsig). */
const magic = "SSHSIG";
const version = 1;
const armoured = /^-----BEGIN SSH SIGNATURE-----\n([A-Za-z0-9+/=\n]+)\n-----END SSH SIGNATURE-----\n*$/;
/** What git signs; a signature for something else than git does not count. */
const namespace = "git";
const curveHashes: Readonly<Record<string, string>> = {
  "ecdsa-sha2-nistp256": "sha256",
  "ecdsa-sha2-nistp384": "sha384",
  "ecdsa-sha2-nistp521": "sha512",
};
const rsaHashes: Readonly<Record<string, string>> = { "rsa-sha2-256": "sha256", "rsa-sha2-512": "sha512" };

export type SshVerdict =
  | { readonly kind: "verified"; readonly key: SshPublicKey }
  /** @param fingerprint - of the key that the signature names. */
  | { readonly kind: "unknown"; readonly fingerprint: string }
  /** @param problem - as a part of a message: `does not fit its content`. */
  | { readonly kind: "weak" | "invalid"; readonly problem: string };

/** Verifies an armoured SSH signature of git over a content, with the trusted keys. */
export function verifySshSignature(content: Buffer, armour: string, trusted: readonly SshPublicKey[]): SshVerdict {
  try {
    return verifyRead(content, readSignature(armour), trusted);
  } catch {
    return invalid("is damaged");
  }
}

interface SshSignature {
  /** The signer's key in the wire format. */
  readonly wire: Buffer;
  readonly namespace: string;
  readonly reserved: Buffer;
  readonly hash: string;
  readonly algorithm: string;
  readonly bytes: Buffer;
}

function readSignature(armour: string): SshSignature {
  const [, encoded] = armoured.exec(armour) ?? [];
  if (encoded === undefined) throw new RangeError("it is no armoured signature");
  const reader = new WireReader(Buffer.from(encoded, "base64"));
  if (reader.take(magic.length).toString("latin1") !== magic || reader.number() !== version) {
    throw new RangeError("it is no signature of version 1");
  }
  const named = { wire: reader.bytes(), namespace: reader.text(), reserved: reader.bytes(), hash: reader.text() };
  const signature = new WireReader(reader.bytes());
  const made = { algorithm: signature.text(), bytes: signature.bytes() };
  if (!reader.isAtEnd || !signature.isAtEnd) throw new RangeError("something follows it");
  return { ...named, ...made };
}

function verifyRead(content: Buffer, signature: SshSignature, trusted: readonly SshPublicKey[]): SshVerdict {
  const { wire, reserved, hash } = signature;
  const key = trusted.find((each) => each.wire.equals(wire));
  if (key === undefined) {
    const digest = createHash("sha256").update(wire).digest("base64").replace(/=+$/, "");
    return { kind: "unknown", fingerprint: `SHA256:${digest}` };
  }
  if (signature.namespace !== namespace) return invalid(`is for "${signature.namespace}", not for git`);
  if (hash !== "sha256" && hash !== "sha512") return weak(`the hash ${hash}`);
  const digest = createHash(hash).update(content).digest();
  const parts = [signature.namespace, reserved, hash, digest].map(wireBytes);
  const isRight = isSignedBy(key, signature, Buffer.concat([Buffer.from(magic), ...parts]));
  if (isRight === "weak") return weak(`${signature.algorithm} with SHA-1`);
  if (isRight === "unsupported") return invalid(`uses ${signature.algorithm}, which is not accepted`);
  return isRight ? { kind: "verified", key } : invalid("does not fit its content: it was changed after it was signed");
}

function isSignedBy({ type, key }: SshPublicKey, { algorithm, bytes }: SshSignature, signed: Buffer) {
  if (type === "ssh-rsa") {
    if (algorithm === type) return "weak";
    const hash = rsaHashes[algorithm];
    return hash === undefined ? "unsupported" : verify(hash, signed, key, bytes);
  }
  if (algorithm !== type) return "unsupported";
  const size = curveBytes(type);
  if (size === undefined) return verify(null, signed, key, bytes);
  const reader = new WireReader(bytes);
  const numbers = [reader.integer(), reader.integer()];
  if (!reader.isAtEnd || numbers.some(({ length }) => length > size)) return false;
  const padded = numbers.map((number) => Buffer.concat([Buffer.alloc(size - number.length), number]));
  return verify(curveHashes[type], signed, { key, dsaEncoding: "ieee-p1363" }, Buffer.concat(padded));
}

function weak(algorithm: string): SshVerdict {
  return { kind: "weak", problem: `uses ${algorithm}, which is not accepted` };
}

function invalid(problem: string): SshVerdict {
  return { kind: "invalid", problem };
}
