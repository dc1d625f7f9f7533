import { hexOf } from "#shared/domain/digest.ts";

/** Where large values are kept; each key names its content's digest. */
export const blobKeys = {
  artifact: (digest: string): string => `artifacts/${hexOf(digest)}.tar.gz`,
  rendering: (digest: string): string => `renderings/${hexOf(digest)}.json`,
  inventory: (cluster: string, digest: string): string => `inventories/${cluster}/${hexOf(digest)}.json`,
  members: (digest: string): string => `plans/${hexOf(digest)}.json`,
} as const;
