import { type PgpVerdict, verifyPgp } from "#shared/adapters/signatures/verify-pgp.ts";
import type { ErrorCode } from "#shared/base/error-codes.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import type { GitVerification } from "#shared/fleet/kinds/source.ts";
import type { GitTree } from "#shared/ports.ts";
import type { ResolvedReference } from "#shared/source/git-reference.ts";
import { isPgpKey } from "#shared/source/signatures/pgp-key.ts";
import { type SignedObject, signedCommit, signedTag, tagName } from "#shared/source/signatures/signed-object.ts";
import { parseSshKey } from "#shared/source/signatures/ssh-key.ts";
import { type SshVerdict, verifySshSignature } from "#shared/source/signatures/ssh-signature.ts";
import type { Verified, VerifiedSignature } from "#shared/source/signatures/verified.ts";

const keysField = "spec.git.verify.keys";

/** The objects of a revision, and what the Source follows. */
export interface Signed extends Pick<GitTree, "commit" | "raw"> {
  readonly url: string;
  /** The reference that the Source follows. */
  readonly reference: ResolvedReference;
}

/**
 * Verifies what the mode demands.
 * @param now - when a key must be valid.
 * @throws StarlingError with a code of `signatureCodes`.
 */
export async function verifyGit(signed: Signed, { mode, keys }: GitVerification, now: Date): Promise<Verified> {
  const { url, reference, commit } = signed;
  if (commit.oid !== reference.commit) {
    const message = `${url} lists ${reference.commit} for a tag that leads to ${commit.oid}; check the git server`;
    throw refusal("GitOperationFailed", message);
  }
  const signatures = [
    ...(mode === "HEAD" ? [] : [await verifyTag(signed, keys, now)]),
    ...(mode === "Tag" ? [] : [await verifyCommit(signed, keys, now)]),
  ];
  return { mode, signatures };
}

async function verifyCommit(
  { url, commit, raw }: Signed,
  keys: readonly string[],
  now: Date,
): Promise<VerifiedSignature> {
  const object = `commit ${commit.oid}`;
  const found = signedCommit(Buffer.from(raw.commit));
  if (found === undefined) {
    const message = `${object} of ${url} is not signed; sign it with git commit -S, and push it`;
    throw refusal("SignatureMissing", message);
  }
  return { object, ...(await verifySignature(found, { what: `${object} of ${url}`, keys, now })) };
}

async function verifyTag(
  { url, reference: { name: tag = "" }, raw }: Signed,
  keys: readonly string[],
  now: Date,
): Promise<VerifiedSignature> {
  const object = `tag ${excerpt(tag)}`;
  const what = `${object} of ${url}`;
  const remedy = `make it with git tag -s, and push it`;
  if (raw.tag === undefined) {
    throw refusal("TagNotAnnotated", `${what} is a lightweight tag, which has no signature; ${remedy}`);
  }
  const bytes = Buffer.from(raw.tag);
  const found = signedTag(bytes);
  if (found === undefined) throw refusal("SignatureMissing", `${what} is not signed; ${remedy}`);
  const signer = await verifySignature(found, { what, keys, now });
  const name = tagName(bytes);
  // A signed tag could be pushed once more under the name of another version.
  if (name !== tag) {
    throw refusal("SignatureInvalid", `${what} was signed under the name ${excerpt(name)}; ${remedy}`);
  }
  return { object, ...signer };
}

interface Asked {
  readonly what: string;
  readonly keys: readonly string[];
  readonly now: Date;
}

type Signer = Omit<VerifiedSignature, "object">;

async function verifySignature({ content, armour }: SignedObject, { what, keys, now }: Asked): Promise<Signer> {
  if (armour.startsWith("-----BEGIN SSH SIGNATURE-----")) {
    const trusted = keys.map(parseSshKey).filter((key) => typeof key !== "string");
    return sshSigner(verifySshSignature(content, armour, trusted), what);
  }
  if (armour.startsWith("-----BEGIN PGP")) {
    return pgpSigner(await verifyPgp({ content, armour }, keys.filter(isPgpKey), now), { what, field: keysField });
  }
  throw refusal(
    "SignatureInvalid",
    `${what} has a signature of a form that Starling does not verify; sign it with SSH or OpenPGP`,
  );
}

function sshSigner(verdict: SshVerdict, what: string): Signer {
  switch (verdict.kind) {
    case "verified": {
      const { fingerprint, comment } = verdict.key;
      return { key: fingerprint, ...(comment === "" ? {} : { owner: excerpt(comment) }) };
    }
    case "unknown":
      throw unknownKey(`key ${verdict.fingerprint}`, { what, field: keysField });
    case "weak":
    case "invalid":
      throw badSignature(verdict, what);
  }
}

interface PgpAsked {
  /** The signed object, for errors. */
  readonly what: string;
  /** The field with the trusted keys. */
  readonly field: string;
}

/** @throws StarlingError `SignatureKeyUnknown`, `SignatureKeyRevoked`, `SignatureKeyExpired`, `SignatureWeak` or `SignatureInvalid` */
function pgpSigner(verdict: PgpVerdict, { what, field }: PgpAsked): Signer {
  switch (verdict.kind) {
    case "verified":
      return { key: verdict.fingerprint, ...(verdict.owner === undefined ? {} : { owner: verdict.owner }) };
    case "unknown":
      throw unknownKey(`OpenPGP key ${verdict.key}`, { what, field });
    case "revoked": {
      const remedy = `sign it with another key, and remove this one from ${field}`;
      throw refusal(
        "SignatureKeyRevoked",
        `${what} is signed with the key ${verdict.key}, which is revoked; ${remedy}`,
      );
    }
    case "expired": {
      const when = verdict.hasSignedAfter ? "before it signed" : "since then";
      const day = verdict.at.toISOString().slice(0, 10);
      const remedy = `sign it with a key that is valid; or extend this one, and export it into ${field} again`;
      throw refusal(
        "SignatureKeyExpired",
        `${what} is signed with the key ${verdict.key}, which expired on ${day}, ${when}; ${remedy}`,
      );
    }
    case "weak":
    case "invalid":
      throw badSignature(verdict, what);
  }
}

function unknownKey(key: string, { what, field }: PgpAsked): StarlingError {
  const remedy = `sign it with a trusted key, or add this one to ${field} if you trust it`;
  return refusal("SignatureKeyUnknown", `${what} is signed with the ${key}, which is not trusted; ${remedy}`);
}

function badSignature(
  { kind, problem }: { readonly kind: "weak" | "invalid"; readonly problem: string },
  what: string,
): StarlingError {
  const [code, remedy]: [ErrorCode, string] =
    kind === "weak" ? ["SignatureWeak", "sign it again with SHA-256"] : ["SignatureInvalid", "sign it again"];
  return refusal(code, `${what} has a signature that ${problem}; ${remedy}, and publish it`);
}

function refusal(code: ErrorCode, message: string): StarlingError {
  return new StarlingError(message, { code, retry: "permanent" });
}
