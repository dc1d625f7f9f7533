/** The artifacts of a Source, as the API answers them to people and programs. */
import { defined } from "#shared/base/defined.ts";
import { commitItem } from "#shared/fleet/api/history-item.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import type { Artifact } from "#shared/fleet/rows/object-rows.ts";

/** Header of an answer about one artifact. */
export const digestHeader = "starling-digest";

export interface ArtifactItem {
  readonly revision: string;
  /** Digest of the files: docs/artifacts.md has the rule. */
  readonly digest: string;
  /** Since when the Source had it; absent when that is longer ago than revisions are kept. */
  readonly at?: string;
  readonly present: boolean;
  /** Bytes of the stored archive. */
  readonly sizeBytes: number;
  readonly files: number;
  /** When the archive was stored last. */
  readonly storedAt: string;
  /** Key of the archive in the bucket. */
  readonly key: string;
  /** Address of the upstream that it came from; absent in artifacts that were fetched before it was recorded. */
  readonly origin?: string;
  /** The verified object and the key, when the Source demanded a signature. */
  readonly verified?: NonNullable<Artifact["verified"]>;
  /** The artifacts of other Sources that are a part of it, in the order of `spec.include`; absent without any. */
  readonly included?: NonNullable<Artifact["included"]>;
  readonly title: string;
  readonly author: string;
  readonly committedAt?: string;
}

/** One artifact, and a URL that reads it for some minutes without further credentials. */
export interface LinkedArtifact extends ArtifactItem {
  readonly url: string;
  readonly urlExpiresAt: string;
}

export function artifactItem(
  artifact: Artifact,
  has: { readonly at?: string; readonly present: boolean },
): ArtifactItem {
  const { digest, sizeBytes, files, storedAt, origin, verified, included } = artifact;
  const { revision, title, author, committedAt } = commitItem(artifact, undefined);
  return {
    ...{ revision, digest },
    ...has,
    ...{ sizeBytes, files, storedAt },
    key: blobKeys.artifact(digest),
    ...defined({ origin, verified, included }),
    ...{ title, author },
    ...defined({ committedAt }),
  };
}
