import { upstreamError } from "#functions/resolve/upstreams/upstream-errors.ts";
import type { ErrorCode } from "#shared/base/error-codes.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import type { GitVerification } from "#shared/fleet/kinds/source.ts";
import type { GitTree } from "#shared/ports.ts";
import type { ResolvedReference } from "#shared/source/git-reference.ts";
import { type SignedObject, signedCommit, signedTag, tagName } from "#shared/source/signatures/signed-object.ts";
import { parseSshKey } from "#shared/source/signatures/ssh-key.ts";
import { verifySshSignature } from "#shared/source/signatures/ssh-signature.ts";

const keysField = "spec.git.verify.keys";

/** The objects of a revision, and what the Source follows. */
export interface Signed extends Pick<GitTree, "commit" | "raw"> {
  readonly url: string;
  /** The reference that the Source follows. */
  readonly reference: ResolvedReference;
}

/**
 * Verifies what the mode demands.
 * @returns what was verified, and with which key, as a sentence.
 * @throws StarlingError `SignatureMissing`, `SignatureInvalid`, `SignatureKeyUnknown`, `TagNotAnnotated`
 */
export function verifyGit(signed: Signed, { mode, keys }: GitVerification): string {
  const { url, reference, commit } = signed;
  if (commit.oid !== reference.commit) {
    const message = `${url} lists ${reference.commit} for a tag that leads to ${commit.oid}; check the git server`;
    throw upstreamError("GitOperationFailed", message);
  }
  const verified = [
    ...(mode === "HEAD" ? [] : [verifyTag(signed, keys)]),
    ...(mode === "Tag" ? [] : [verifyCommit(signed, keys)]),
  ];
  return `verified ${verified.join(" and ")}`;
}

function verifyCommit({ url, commit, raw }: Signed, keys: readonly string[]): string {
  const what = `commit ${commit.oid}`;
  const found = signedCommit(Buffer.from(raw.commit));
  if (found === undefined) {
    const message = `${what} of ${url} is not signed; sign it with git commit -S, and push it`;
    throw upstreamError("SignatureMissing", message);
  }
  return `${what} with ${verifySignature(found, { what, url, keys })}`;
}

function verifyTag({ url, reference: { name: tag = "" }, raw }: Signed, keys: readonly string[]): string {
  const what = `tag ${excerpt(tag)}`;
  const remedy = `make it with git tag -s, and push it`;
  if (raw.tag === undefined) {
    throw upstreamError("TagNotAnnotated", `${what} of ${url} is a lightweight tag, which has no signature; ${remedy}`);
  }
  const bytes = Buffer.from(raw.tag);
  const found = signedTag(bytes);
  if (found === undefined) throw upstreamError("SignatureMissing", `${what} of ${url} is not signed; ${remedy}`);
  const signer = verifySignature(found, { what, url, keys });
  const name = tagName(bytes);
  // A signed tag could be pushed once more under the name of another version.
  if (name !== tag) {
    const message = `${what} of ${url} was signed under the name ${excerpt(name)}; ${remedy}`;
    throw upstreamError("SignatureInvalid", message);
  }
  return `${what} with ${signer}`;
}

interface Asked {
  readonly what: string;
  readonly url: string;
  readonly keys: readonly string[];
}

/** @returns the key that signed. */
function verifySignature({ content, armour }: SignedObject, { what, url, keys }: Asked): string {
  const refused = (code: ErrorCode, found: string) => upstreamError(code, `${what} of ${url} ${found}`);
  if (!armour.startsWith("-----BEGIN SSH SIGNATURE-----")) {
    const form = armour.startsWith("-----BEGIN PGP") ? "OpenPGP" : "something else than SSH";
    throw refused(
      "SignatureKeyUnknown",
      `is signed with ${form}, and ${keysField} has SSH keys only; sign it with SSH`,
    );
  }
  const trusted = keys.map(parseSshKey).filter((key) => typeof key !== "string");
  const verdict = verifySshSignature(content, armour, trusted);
  switch (verdict.kind) {
    case "verified":
      return `the key ${verdict.key.fingerprint}`;
    case "unknown": {
      const remedy = `sign it with a trusted key, or add this one to ${keysField} if you trust it`;
      throw refused(
        "SignatureKeyUnknown",
        `is signed with the key ${verdict.fingerprint}, which is not trusted; ${remedy}`,
      );
    }
    case "invalid":
      throw refused("SignatureInvalid", `has a signature that ${verdict.problem}; sign it again, and push it`);
  }
}
