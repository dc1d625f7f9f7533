/** The meaning of a verdict: who signed, or why that does not count. */
import type { PgpVerdict } from "#shared/adapters/signatures/verify-pgp.ts";
import type { ErrorCode } from "#shared/base/error-codes.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import type { SshVerdict } from "#shared/source/signatures/ssh-signature.ts";
import type { VerifiedSignature } from "#shared/source/signatures/verified.ts";

export type Signer = Omit<VerifiedSignature, "object">;

export interface SignerAsked {
  /** The signed object, for errors. */
  readonly what: string;
  /** The field with the trusted keys. */
  readonly field: string;
}

/** @throws StarlingError `SignatureKeyUnknown`, `SignatureWeak` or `SignatureInvalid` */
export function sshSigner(verdict: SshVerdict, asked: SignerAsked): Signer {
  switch (verdict.kind) {
    case "verified": {
      const { fingerprint, comment } = verdict.key;
      return { key: fingerprint, ...(comment === "" ? {} : { owner: excerpt(comment) }) };
    }
    case "unknown":
      throw unknownKey(`key ${verdict.fingerprint}`, asked);
    case "weak":
    case "invalid":
      throw badSignature(verdict, asked);
  }
}

/**
 * @throws StarlingError `SignatureKeyUnknown`, `SignatureKeyRevoked`, `SignatureKeyExpired`, `SignatureWeak` or
 * `SignatureInvalid`
 */
export function pgpSigner(verdict: PgpVerdict, asked: SignerAsked): Signer {
  const { what, field } = asked;
  switch (verdict.kind) {
    case "verified":
      return { key: verdict.fingerprint, ...(verdict.owner === undefined ? {} : { owner: verdict.owner }) };
    case "unknown":
      throw unknownKey(`OpenPGP key ${verdict.key}`, asked);
    case "revoked": {
      const remedy = `sign it with another key, and remove this one from ${field}`;
      throw signatureRefusal(
        "SignatureKeyRevoked",
        `${what} is signed with the key ${verdict.key}, which is revoked; ${remedy}`,
      );
    }
    case "expired": {
      const when = verdict.hasSignedAfter ? "before it signed" : "since then";
      const day = verdict.at.toISOString().slice(0, 10);
      const remedy = `sign it with a key that is valid; or extend this one, and export it into ${field} again`;
      throw signatureRefusal(
        "SignatureKeyExpired",
        `${what} is signed with the key ${verdict.key}, which expired on ${day}, ${when}; ${remedy}`,
      );
    }
    case "weak":
    case "invalid":
      throw badSignature(verdict, asked);
  }
}

function unknownKey(key: string, { what, field }: SignerAsked): StarlingError {
  const remedy = `sign it with a trusted key, or add this one to ${field} if you trust it`;
  return signatureRefusal("SignatureKeyUnknown", `${what} is signed with the ${key}, which is not trusted; ${remedy}`);
}

function badSignature(
  { kind, problem }: { readonly kind: "weak" | "invalid"; readonly problem: string },
  { what }: SignerAsked,
): StarlingError {
  const [code, remedy]: [ErrorCode, string] =
    kind === "weak" ? ["SignatureWeak", "sign it again with SHA-256"] : ["SignatureInvalid", "sign it again"];
  return signatureRefusal(code, `${what} has a signature that ${problem}; ${remedy}, and publish it`);
}

export function signatureRefusal(code: ErrorCode, message: string): StarlingError {
  return new StarlingError(message, { code, retry: "permanent" });
}
