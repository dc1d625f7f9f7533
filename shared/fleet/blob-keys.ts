import { hexOf } from "#shared/base/digest.ts";

/** Where large values are kept; each key names its content's digest, but for what is on its way. */
export const blobKeys = {
  artifact: (digest: string): string => `artifacts/${hexOf(digest)}.tar.gz`,
  rendering: (digest: string): string => `renderings/${hexOf(digest)}.json`,
  /** Left by `build` for `render`, once for each try; gone after a day. */
  incoming: (attempt: string): string => `incoming/${attempt}`,
  inventory: (cluster: string, digest: string): string => `inventories/${cluster}/${hexOf(digest)}.json`,
  members: (digest: string): string => `plans/${hexOf(digest)}.json`,
} as const;
