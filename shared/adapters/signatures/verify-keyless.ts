/** Verifies cosign's signatures by certificates that a certificate authority gave for an identity. */
import { X509Certificate } from "node:crypto";
import type { Bundle } from "@sigstore/bundle";
import type { Signer, TrustMaterial, VerifierOptions } from "@sigstore/verify";
import type {
  CosignSignature,
  SignatureVerdict,
  SimpleSignature,
} from "#shared/adapters/signatures/cosign-signature.ts";
import { readBundle } from "#shared/adapters/signatures/sigstore-bundle.ts";
import { claimVerdict, type SignedArtifact } from "#shared/adapters/signatures/verify-with-keys.ts";
import { hexOf, sha256 } from "#shared/base/digest.ts";
import { errorMessage } from "#shared/base/errors.ts";
import type { LinearRegex } from "#shared/source/linear-regex.ts";
import { type Claim, simpleClaim, statementClaim } from "#shared/source/signatures/cosign-claim.ts";

/** Whom the Source trusts: a certificate must be for one of the identities. */
export interface TrustedIdentities {
  readonly material: TrustMaterial;
  readonly identities: readonly { readonly issuer: LinearRegex; readonly subject: LinearRegex }[];
}

export async function verifyKeyless(
  found: CosignSignature,
  artifact: SignedArtifact,
  trust: TrustedIdentities,
): Promise<SignatureVerdict> {
  if (found.kind === "unreadable") return found;
  const signed = found.kind === "simple" ? await simpleIn(found) : await bundleIn(found.bytes, artifact);
  if ("kind" in signed) return signed;
  const { Verifier, toSignedEntity } = await import("@sigstore/verify");
  let signer: Signer;
  try {
    const verifier = new Verifier(trust.material, thresholds(trust.material));
    signer = verifier.verify(toSignedEntity(signed.bundle, signed.content));
  } catch (error) {
    return refusalOf(error);
  }
  return claimVerdict(signed.claim, artifact) ?? identityVerdict(signer, trust);
}

/** A log or a timestamp must say when it was signed, because the certificate is valid for minutes; all that the root names counts. */
function thresholds({ tlogs, ctlogs }: TrustMaterial): VerifierOptions {
  return {
    tlogThreshold: Math.min(tlogs.length, 1),
    ctlogThreshold: Math.min(ctlogs.length, 1),
    timestampThreshold: 1,
  };
}

interface Keyless {
  readonly bundle: Bundle;
  /** The signed bytes of a signature that is no statement. */
  readonly content: Buffer | undefined;
  readonly claim: Claim;
}

async function bundleIn(bytes: Uint8Array, { manifest, digest }: SignedArtifact): Promise<Keyless | SignatureVerdict> {
  const read = await readBundle(bytes);
  if (typeof read === "string") return { kind: "unreadable", problem: read };
  const { bundle, content, material } = read;
  if (material.$case === "publicKey") return keyed;
  if (content.$case === "dsseEnvelope") {
    return { bundle, content: undefined, claim: statementClaim(content.dsseEnvelope.payload) };
  }
  return { bundle, content: Buffer.from(manifest), claim: [digest] };
}

const keyed: SignatureVerdict = { kind: "unknown", problem: "is of a key, and the Source trusts identities" };

async function simpleIn(simple: SimpleSignature): Promise<Keyless | SignatureVerdict> {
  if (simple.certificate === undefined) return keyed;
  let json: unknown;
  try {
    json = bundleJson(simple, simple.certificate);
  } catch (error) {
    return { kind: "unreadable", problem: `has damaged annotations (${errorMessage(error).slice(0, 200)})` };
  }
  const read = await readBundle(Buffer.from(JSON.stringify(json)));
  if (typeof read === "string") return { kind: "unreadable", problem: read };
  return { bundle: read.bundle, content: Buffer.from(simple.payload), claim: simpleClaim(simple.payload) };
}

interface RekorAnswer {
  readonly SignedEntryTimestamp: string;
  readonly Payload: {
    readonly body: string;
    readonly integratedTime: number;
    readonly logIndex: number;
    readonly logID: string;
  };
}

/** The same as a bundle of the first version, which has what the annotations have. */
function bundleJson({ payload, signature, entry, timestamp }: SimpleSignature, certificate: string): unknown {
  return {
    mediaType: "application/vnd.dev.sigstore.bundle+json;version=0.1",
    verificationMaterial: {
      x509CertificateChain: { certificates: [{ rawBytes: new X509Certificate(certificate).raw.toString("base64") }] },
      tlogEntries: entry === undefined ? [] : [entryJson(JSON.parse(entry))],
      timestampVerificationData: {
        rfc3161Timestamps:
          timestamp === undefined ? [] : [{ signedTimestamp: JSON.parse(timestamp).SignedRFC3161Timestamp }],
      },
    },
    messageSignature: {
      messageDigest: { algorithm: "SHA2_256", digest: Buffer.from(hexOf(sha256(payload)), "hex").toString("base64") },
      signature,
    },
  };
}

function entryJson({ SignedEntryTimestamp, Payload }: RekorAnswer): unknown {
  const { body, integratedTime, logIndex, logID } = Payload;
  const { kind, apiVersion } = JSON.parse(Buffer.from(body, "base64").toString());
  return {
    logIndex: String(logIndex),
    logId: { keyId: Buffer.from(logID, "hex").toString("base64") },
    kindVersion: { kind, version: apiVersion },
    integratedTime: String(integratedTime),
    inclusionPromise: { signedEntryTimestamp: SignedEntryTimestamp },
    canonicalizedBody: body,
  };
}

function identityVerdict({ key, identity }: Signer, { identities }: TrustedIdentities): SignatureVerdict {
  const name = identity?.subjectAlternativeName;
  const issuer = identity?.extensions?.issuer;
  const isTrusted =
    name !== undefined && issuer !== undefined && identities.some((each) => each.issuer(issuer) && each.subject(name));
  const owner = `${(name ?? "nobody").slice(0, 500)} (${(issuer ?? "no issuer").slice(0, 500)})`;
  if (!isTrusted) return { kind: "identity", problem: `is of ${owner}, which is none of the trusted identities` };
  return { kind: "verified", key: sha256(key.export({ type: "spki", format: "der" })), owner };
}

/** The errors of the library have a code, and all others come from bytes that it cannot read. */
function refusalOf(error: unknown): SignatureVerdict {
  const { code = "" } = error as { readonly code?: string };
  const causes = [error, (error as { readonly cause?: unknown }).cause].filter((each) => each !== undefined);
  const why = causes.map(errorMessage).join(": ").slice(0, 300);
  switch (code) {
    case "TIMESTAMP_ERROR":
    case "TLOG_ERROR":
    case "TLOG_MISSING_INCLUSION_ERROR":
    case "TLOG_INCLUSION_PROOF_ERROR":
    case "TLOG_INCLUSION_PROMISE_ERROR":
      return {
        kind: "not logged",
        problem: `has no entry in a trusted log, and no trusted timestamp, that proves when it was signed (${why})`,
      };
    case "CERTIFICATE_ERROR":
      return { kind: "certificate", problem: `has a certificate that does not count (${why})` };
    case "TLOG_BODY_ERROR":
      return { kind: "invalid", problem: `does not fit its entry in the log (${why})` };
    default:
      return { kind: "invalid", problem: `does not fit its content (${why})` };
  }
}
