import { hexOf } from "#shared/base/digest.ts";

/** The time in which a reader begins to use the URL of a blob. */
export const linkSeconds = 300;

/** Keys of large values. Each key has the digest of the content, except for blobs in transit. */
export const blobKeys = {
  artifact: (digest: string): string => `artifacts/${hexOf(digest)}.tar.gz`,
  rendering: (digest: string): string => `renderings/${hexOf(digest)}.json`,
  /** Left by `build` for `render`, once for each try; deleted after a day. */
  incoming: (attempt: string): string => `incoming/${attempt}`,
  /** Uploaded by CI for a Source; deleted after a day. */
  upload: ({ namespace, name }: { readonly namespace: string; readonly name: string }, id: string): string =>
    `uploads/${namespace}/${name}/${id}`,
  inventory: (cluster: string, digest: string): string => `inventories/${cluster}/${hexOf(digest)}.json`,
  members: (digest: string): string => `plans/${hexOf(digest)}.json`,
} as const;
