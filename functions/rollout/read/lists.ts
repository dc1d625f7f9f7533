import { storedList } from "#shared/adapters/stored-list.ts";
import { sha256 } from "#shared/base/digest.ts";
import { canonicalJson } from "#shared/base/json.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import type { BlobStore } from "#shared/ports.ts";

/** Lists of clusters, or of their facts: megabytes in a large fleet, of which a step needs a page. */
export interface Lists {
  /** Keeps the list for as long as a row names its key. */
  store(list: readonly unknown[]): Promise<string>;
  /** @throws StarlingError `BlobNotFound`, `BlobCorrupt` */
  read<Item>(key: string): Promise<readonly Item[]>;
}

/** Lists in a store; each is read and parsed once. */
export function listsIn(blobs: BlobStore): Lists {
  const known = new Map<string, Promise<readonly unknown[]>>();
  return {
    async store(list) {
      const text = canonicalJson(list);
      const key = blobKeys.members(sha256(text));
      known.delete(key);
      // The stored list is overwritten, because it may have been changed: that repairs it.
      await blobs.overwrite(key, Buffer.from(text));
      return key;
    },
    read<Item>(key: string) {
      const list =
        known.get(key) ??
        storedList(blobs, key).catch((error: unknown) => {
          known.delete(key);
          throw error;
        });
      known.set(key, list);
      return list as Promise<readonly Item[]>;
    },
  };
}
