/** Signs what is in a local registry with a key, as the program cosign does. */
import { type KeyObject, sign } from "node:crypto";
import type { RegistryServer } from "#local/registry/registry-server.ts";
import { hexOf } from "#shared/base/digest.ts";

export const bundleType = "application/vnd.dev.sigstore.bundle.v0.3+json";
const statementType = "application/vnd.in-toto+json";
const signPredicate = "https://sigstore.dev/cosign/sign/v1";

export interface InRegistry {
  readonly registry: RegistryServer;
  readonly repository: string;
  /** Of the manifest. */
  readonly digest: string;
}

/** The statement that cosign 3 signs. */
export function statementOf(digest: string, predicateType = signPredicate): string {
  const objects = [{ digest: { sha256: hexOf(digest) }, annotations: {} }];
  return JSON.stringify({ _type: "https://in-toto.io/Statement/v1", subject: objects, predicateType, predicate: {} });
}

/** A bundle with the signature of a key over a statement. */
export function keyedBundle(
  statement: string,
  keys: { readonly privateKey: KeyObject; readonly hint: string },
): object {
  const payload = Buffer.from(statement);
  const head = `DSSEv1 ${statementType.length} ${statementType} ${payload.length} `;
  const signature = signBytes(Buffer.concat([Buffer.from(head), payload]), keys.privateKey);
  return {
    mediaType: bundleType,
    verificationMaterial: { publicKey: { hint: keys.hint }, tlogEntries: [] },
    dsseEnvelope: {
      payload: payload.toString("base64"),
      payloadType: statementType,
      signatures: [{ sig: signature.toString("base64"), keyid: "" }],
    },
  };
}

/** With SHA-256, or with what an Ed25519 key has instead. */
export function signBytes(bytes: Uint8Array, privateKey: KeyObject): Buffer {
  return sign(privateKey.asymmetricKeyType === "ed25519" ? undefined : "sha256", bytes, privateKey);
}

/** Pushes a bundle as an artifact that refers to the manifest, as cosign 3 does. @returns the digest of its manifest. */
export function attachBundle({ registry, repository, digest }: InRegistry, bundle: object): string {
  return registry.push(repository, undefined, {
    artifactType: bundleType,
    refersTo: digest,
    layers: [{ mediaType: bundleType, content: Buffer.from(JSON.stringify(bundle)) }],
    annotations: { "dev.sigstore.bundle.content": "dsse-envelope", "dev.sigstore.bundle.predicateType": signPredicate },
  });
}
