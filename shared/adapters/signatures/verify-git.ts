import { pgpSigner, type Signer, signatureRefusal, sshSigner } from "#shared/adapters/signatures/signer.ts";
import { verifyPgp } from "#shared/adapters/signatures/verify-pgp.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import type { GitVerification } from "#shared/fleet/kinds/source.ts";
import type { GitTree } from "#shared/ports.ts";
import { nameInKind, type ResolvedReference } from "#shared/source/git-reference.ts";
import { isPgpKey } from "#shared/source/signatures/pgp-key.ts";
import { type SignedObject, signedCommit, signedTag, tagName } from "#shared/source/signatures/signed-object.ts";
import { parseSshKey } from "#shared/source/signatures/ssh-key.ts";
import { verifySshSignature } from "#shared/source/signatures/ssh-signature.ts";
import type { Verified, VerifiedSignature } from "#shared/source/signatures/verified.ts";

const field = "spec.git.verify.keys";

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
    throw signatureRefusal("GitOperationFailed", message);
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
    throw signatureRefusal("SignatureMissing", message);
  }
  return { object, ...(await verifySignature(found, { what: `${object} of ${url}`, keys, now })) };
}

async function verifyTag(
  { url, reference, raw }: Signed,
  keys: readonly string[],
  now: Date,
): Promise<VerifiedSignature> {
  const tag = nameInKind(reference.name ?? "");
  const object = `tag ${excerpt(tag)}`;
  const what = `${object} of ${url}`;
  const remedy = `make it with git tag -s, and push it`;
  if (raw.tag === undefined) {
    throw signatureRefusal("TagNotAnnotated", `${what} is a lightweight tag, which has no signature; ${remedy}`);
  }
  const bytes = Buffer.from(raw.tag);
  const found = signedTag(bytes);
  if (found === undefined) throw signatureRefusal("SignatureMissing", `${what} is not signed; ${remedy}`);
  const signer = await verifySignature(found, { what, keys, now });
  const name = tagName(bytes);
  // A signed tag could be pushed once more under the name of another version.
  if (name !== tag) {
    throw signatureRefusal("SignatureInvalid", `${what} was signed under the name ${excerpt(name)}; ${remedy}`);
  }
  return { object, ...signer };
}

interface Asked {
  readonly what: string;
  readonly keys: readonly string[];
  readonly now: Date;
}

async function verifySignature({ content, armour }: SignedObject, { what, keys, now }: Asked): Promise<Signer> {
  if (armour.startsWith("-----BEGIN SSH SIGNATURE-----")) {
    const trusted = keys.map(parseSshKey).filter((key) => typeof key !== "string");
    return sshSigner(verifySshSignature(content, armour, trusted), { what, field });
  }
  if (armour.startsWith("-----BEGIN PGP")) {
    return pgpSigner(await verifyPgp({ content, armour }, keys.filter(isPgpKey), now), { what, field });
  }
  throw signatureRefusal(
    "SignatureInvalid",
    `${what} has a signature of a form that Starling does not verify; sign it with SSH or OpenPGP`,
  );
}
