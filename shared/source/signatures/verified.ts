/** What a verification found. */
export interface Verified {
  /** What the Source demands: `HEAD`, `Tag` or `TagAndHEAD` of git, `provenance` of a chart, `cosign` of an artifact in a registry. */
  readonly mode: string;
  readonly signatures: readonly VerifiedSignature[];
}

export interface VerifiedSignature {
  /** As a part of a message: `commit 1f3a…`, `tag v1.2.0`, `sha256:…` of a manifest. */
  readonly object: string;
  /** The fingerprint of the key: `SHA256:…` of an SSH key, hexadecimal digits of an OpenPGP key, `sha256:…` of a key of cosign. */
  readonly key: string;
  /** The comment or the user id that the trusted key has, or the identity that the certificate names. */
  readonly owner?: string;
}

/** The verified objects with their keys, as a sentence. */
export function verifiedText({ mode, signatures }: Verified): string {
  return `verified ${signatures.map(signatureText).join(" and ")} (mode ${mode})`;
}

function signatureText({ object, key, owner }: VerifiedSignature): string {
  return `${object} with the key ${key}${owner === undefined ? "" : ` of ${owner}`}`;
}
