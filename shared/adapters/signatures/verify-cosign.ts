import {
  type CosignSignature,
  type RefusalKind,
  refusalKinds,
  type SignatureRefusal,
  type SignatureVerdict,
} from "#shared/adapters/signatures/cosign-signature.ts";
import { trustMaterialOf } from "#shared/adapters/signatures/trust-material.ts";
import { verifyKeyless } from "#shared/adapters/signatures/verify-keyless.ts";
import { type SignedArtifact, verifyWithKeys } from "#shared/adapters/signatures/verify-with-keys.ts";
import type { ErrorCode } from "#shared/base/error-codes.ts";
import { errorMessage, StarlingError } from "#shared/base/errors.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import type { CosignTrust } from "#shared/fleet/kinds/cosign-trust.ts";
import { parseLinearRegex } from "#shared/source/linear-regex.ts";
import { parseCosignKey } from "#shared/source/signatures/cosign-key.ts";

export interface CosignQuestion extends SignedArtifact {
  /** For errors: `sha256:… of oci://…`. */
  readonly what: string;
  /** Field of the upstream: `spec.oci`. */
  readonly at: string;
  readonly trust: CosignTrust;
}

const codes: Readonly<Record<RefusalKind, ErrorCode>> = {
  unreadable: "SignatureInvalid",
  unknown: "SignatureKeyUnknown",
  "not logged": "SignatureNotLogged",
  certificate: "SignatureCertificateInvalid",
  invalid: "SignatureInvalid",
  "other digest": "SignatureOfAnother",
  identity: "SignatureIdentityUnknown",
};

/**
 * Reads signatures until one of them is verified.
 * @throws StarlingError with a code of `signatureCodes`, about the signature that was nearest to be verified.
 */
export async function verifyCosign(
  signatures: AsyncIterable<CosignSignature>,
  question: CosignQuestion,
): Promise<Extract<SignatureVerdict, { kind: "verified" }>> {
  const { what, at } = question;
  const verdictOf = await verifierOf(question);
  let count = 0;
  let nearest: SignatureRefusal | undefined;
  for await (const signature of signatures) {
    count++;
    const verdict = await verdictOf(signature);
    if (verdict.kind === "verified") return verdict;
    const isNearer = nearest === undefined || refusalKinds.indexOf(verdict.kind) > refusalKinds.indexOf(nearest.kind);
    if (isNearer) nearest = verdict;
  }
  if (nearest === undefined) {
    throw refusal("SignatureMissing", `${what} is not signed; sign it with cosign sign, by its digest`);
  }
  const which = count === 1 ? "the signature" : `none of ${count} signatures counts; the nearest`;
  throw refusal(
    codes[nearest.kind],
    `${what}: ${which} ${excerpt(nearest.problem, 700)}; ${remedyOf(nearest.kind, at)}`,
  );
}

async function verifierOf({ trust, at, ...artifact }: CosignQuestion) {
  const { keys, identities = [], trustedRoot = "" } = trust;
  if (keys !== undefined) {
    const read = keys.map(parseCosignKey).filter((key) => typeof key !== "string");
    return (signature: CosignSignature) => verifyWithKeys(signature, artifact, read);
  }
  const field = `${at}.verify.cosign.trustedRoot`;
  const material = await trustMaterialOf(trustedRoot).catch((error: unknown) => {
    const message = `${field} cannot be read: ${excerpt(errorMessage(error), 200)}; give the text of a trusted_root.json`;
    throw refusal("SignatureInvalid", message);
  });
  const trusted = identities.map(({ issuer, subject }) => ({ issuer: regexOf(issuer), subject: regexOf(subject) }));
  return (signature: CosignSignature) => verifyKeyless(signature, artifact, { material, identities: trusted });
}

function regexOf(text: string) {
  const regex = parseLinearRegex(text, { isWhole: true });
  if (typeof regex === "string") throw new Error(`a Source with an identity that ${regex} passed its checks`);
  return regex;
}

function remedyOf(kind: RefusalKind, at: string): string {
  const field = `${at}.verify.cosign`;
  switch (kind) {
    case "unknown":
      return `sign it with a trusted key or identity, or add this one to ${field} if you trust it`;
    case "identity":
      return `find out who signed it, or add this identity to ${field}.identities if you trust it`;
    case "not logged":
    case "certificate":
      return `sign it again, or check that ${field}.trustedRoot is of the authorities that signed it`;
    default:
      return "find out who changed it, and sign it again";
  }
}

function refusal(code: ErrorCode, message: string): StarlingError {
  return new StarlingError(message, { code, retry: "permanent" });
}
