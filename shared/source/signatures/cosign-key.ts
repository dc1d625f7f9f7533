import { createPublicKey, type KeyObject } from "node:crypto";
import { sha256 } from "#shared/base/digest.ts";
import { privateKeyProblem } from "#shared/source/signatures/private-key-problem.ts";

/** A public key as `cosign generate-key-pair` writes it. */
export interface CosignKey {
  readonly key: KeyObject;
  /** `sha256:<hex>` of the key's DER form. */
  readonly fingerprint: string;
  /** The name of the key in a bundle: base64 of the same digest. */
  readonly hint: string;
  /** The hashes that signatures of this key may have; `undefined` is what Ed25519 has instead of one. */
  readonly hashes: readonly (string | undefined)[];
}

const begin = "-----BEGIN PUBLIC KEY-----";
const minRsaBits = 2048;
/** Cosign signs with SHA-256 whatever the curve, and other tools with the hash of its size. */
const curveHashes: Readonly<Record<string, readonly string[]>> = {
  prime256v1: ["sha256"],
  secp384r1: ["sha384", "sha256"],
  secp521r1: ["sha512", "sha256"],
};

/** @returns what is wrong with it, as a part of a message, if it is no key that can be trusted. */
export function parseCosignKey(text: string): CosignKey | string {
  const trimmed = text.trim();
  if (trimmed.includes("PRIVATE KEY")) return privateKeyProblem;
  if (!trimmed.startsWith(begin)) return `is no public key; expected the text of cosign.pub: ${begin}`;
  let key: KeyObject;
  try {
    key = createPublicKey({ key: trimmed, format: "pem" });
  } catch {
    return "is damaged: copy the whole text of cosign.pub";
  }
  const hashes = hashesOf(key);
  if (typeof hashes === "string") return hashes;
  const fingerprint = sha256(key.export({ type: "spki", format: "der" }));
  const hint = Buffer.from(fingerprint.slice("sha256:".length), "hex").toString("base64");
  return { key, fingerprint, hint, hashes };
}

function hashesOf({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject): CosignKey["hashes"] | string {
  const supported = "use ECDSA (P-256, P-384 or P-521), Ed25519 or RSA";
  if (type === "ed25519") return [undefined];
  if (type === "rsa") {
    const bits = details?.modulusLength ?? 0;
    return bits < minRsaBits
      ? `is an RSA key of ${bits} bits; at least ${minRsaBits} are needed`
      : ["sha256", "sha512"];
  }
  if (type !== "ec") return `is a key of the type ${type}, which Starling cannot verify; ${supported}`;
  const curve = details?.namedCurve ?? "";
  return curveHashes[curve] ?? `is a key on the curve ${curve}, which Starling cannot verify; ${supported}`;
}
