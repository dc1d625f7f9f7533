/** Makes key pairs as `cosign generate-key-pair` does, without a file. */
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { parseCosignKey } from "#shared/source/signatures/cosign-key.ts";

/** A key that signs, and what verifies its signatures. */
export interface KeyPair {
  readonly privateKey: KeyObject;
  /** PEM, as cosign.pub has it. */
  readonly publicKey: string;
  readonly hint: string;
  readonly fingerprint: string;
}

export function cosignKeyPair(type: "P-256" | "P-384" | "Ed25519" | "RSA" = "P-256"): KeyPair {
  const { privateKey, publicKey } = generated(type);
  const pem = publicKey.export({ type: "spki", format: "pem" }).toString();
  const parsed = parseCosignKey(pem);
  if (typeof parsed === "string") throw new Error(`a key that ${parsed}`);
  return { privateKey, publicKey: pem, hint: parsed.hint, fingerprint: parsed.fingerprint };
}

function generated(type: "P-256" | "P-384" | "Ed25519" | "RSA") {
  if (type === "Ed25519") return generateKeyPairSync("ed25519");
  if (type === "RSA") return generateKeyPairSync("rsa", { modulusLength: 2048 });
  return generateKeyPairSync("ec", { namedCurve: type });
}
