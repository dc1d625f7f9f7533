import { storedList } from "#shared/adapters/stored-list.ts";
import { sha256 } from "#shared/base/digest.ts";
import { canonicalJson } from "#shared/base/json.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import type { BlobStore } from "#shared/ports.ts";

/** Lists of clusters, or of what belongs to them: megabytes in a large fleet, of which a step needs a page. */
export interface Lists {
  /** Keeps it for as long as a row names its key. */
  store(list: readonly unknown[]): Promise<string>;
  /** @throws StarlingError `BlobNotFound`, `BlobCorrupt` */
  read<Item>(key: string): Promise<readonly Item[]>;
}

/** Those in a store, each that is there read, and parsed, once. */
export function listsIn(blobs: BlobStore): Lists {
  const known = new Map<string, Promise<readonly unknown[]>>();
  return {
    async store(list) {
      const text = canonicalJson(list);
      const key = blobKeys.members(sha256(text));
      known.delete(key);
      // Over whatever is there: a list that was changed is mended by it.
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
