/** Verifies cosign's signatures with public keys. A log is not asked: who has the key decides. */
import { verify } from "node:crypto";
import type { CosignSignature, SignatureVerdict } from "#shared/adapters/signatures/cosign-signature.ts";
import { readBundle } from "#shared/adapters/signatures/sigstore-bundle.ts";
import { type Claim, simpleClaim, statementClaim } from "#shared/source/signatures/cosign-claim.ts";
import type { CosignKey } from "#shared/source/signatures/cosign-key.ts";

/** The signed artifact. */
export interface SignedArtifact {
  /** `sha256:<hex>` of the manifest. */
  readonly digest: string;
  readonly manifest: Uint8Array;
}

interface Signed {
  /** The bytes that are signed. */
  readonly content: Uint8Array;
  readonly signature: Uint8Array;
  readonly claim: Claim;
  /** How the signature names its key, if it does. */
  readonly hint?: string;
}

export async function verifyWithKeys(
  found: CosignSignature,
  artifact: SignedArtifact,
  keys: readonly CosignKey[],
): Promise<SignatureVerdict> {
  const signed = await signedIn(found, artifact);
  if ("kind" in signed) return signed;
  const key = keys.find((each) => isSignedBy(each, signed));
  if (key === undefined) return refusedBy(keys, signed);
  return claimVerdict(signed.claim, artifact) ?? { kind: "verified", key: key.fingerprint };
}

/** @returns why the claim is not about the artifact. */
export function claimVerdict(claim: Claim, { digest }: SignedArtifact): SignatureVerdict | undefined {
  if (typeof claim === "string") return { kind: "invalid", problem: `has a signed text that ${claim}` };
  if (claim.includes(digest)) return undefined;
  return {
    kind: "other digest",
    problem: `is of another artifact: it says ${claim.slice(0, 3).join(", ") || "no digest"}`,
  };
}

async function signedIn(found: CosignSignature, artifact: SignedArtifact): Promise<Signed | SignatureVerdict> {
  if (found.kind === "unreadable") return found;
  if (found.kind === "simple") {
    const { payload, signature } = found;
    return { content: payload, signature: Buffer.from(signature, "base64"), claim: simpleClaim(payload) };
  }
  const bundle = await readBundle(found.bytes);
  if (typeof bundle === "string") return { kind: "unreadable", problem: bundle };
  const { material, content } = bundle;
  if (material.$case !== "publicKey") {
    return { kind: "unknown", problem: "is of a certificate, and the Source trusts keys" };
  }
  const { hint } = material.publicKey;
  const named = hint === "" ? {} : { hint };
  if (content.$case === "messageSignature") {
    return {
      content: artifact.manifest,
      signature: content.messageSignature.signature,
      claim: [artifact.digest],
      ...named,
    };
  }
  const { payload, payloadType, signatures } = content.dsseEnvelope;
  const [{ sig } = { sig: Buffer.alloc(0) }] = signatures;
  const head = `DSSEv1 ${Buffer.byteLength(payloadType)} ${payloadType} ${payload.length} `;
  return {
    content: Buffer.concat([Buffer.from(head), payload]),
    signature: sig,
    claim: statementClaim(payload),
    ...named,
  };
}

function isSignedBy({ key, hashes }: CosignKey, { content, signature }: Signed): boolean {
  return hashes.some((hash) => {
    try {
      return verify(hash, content, key, signature);
    } catch {
      // Some bytes are no signature of this type of key.
      return false;
    }
  });
}

function refusedBy(keys: readonly CosignKey[], { hint }: Signed): SignatureVerdict {
  const of = keys.length === 1 ? "the trusted key" : `any of the ${keys.length} trusted keys`;
  if (hint === undefined) {
    return { kind: "unknown", problem: `is not of ${of}, or it was changed after it was signed` };
  }
  const named = keys.find((key) => key.hint === hint);
  if (named === undefined) return { kind: "unknown", problem: `is of the key ${nameOf(hint)}, which is not trusted` };
  return { kind: "invalid", problem: `names the key ${named.fingerprint} and does not fit its content` };
}

function nameOf(hint: string): string {
  const bytes = Buffer.from(hint, "base64");
  return bytes.length === 32 ? `sha256:${bytes.toString("hex")}` : `"${hint.slice(0, 100)}"`;
}
