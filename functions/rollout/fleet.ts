import { storedText } from "#shared/adapters/stored-text.ts";
import { allItems } from "#shared/base/all-pages.ts";
import { digestOf } from "#shared/base/digest.ts";
import { canonicalJson } from "#shared/base/json.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import type { Member } from "#shared/fleet/rollout/plan.ts";
import { clusterOf, ranges } from "#shared/fleet/rows/keys.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import type { BlobStore, Table } from "#shared/ports.ts";

export interface Fleet {
  /** By name. */
  readonly clusters: readonly FleetRow[];
  /** Names of those that are registered, and whose labels and values only a newer version can read. */
  readonly unreadable: ReadonlySet<string>;
}

/** Every registered cluster. */
export async function readFleet(table: Table): Promise<Fleet> {
  const clusters: FleetRow[] = [];
  const unreadable = new Set<string>();
  for await (const row of allItems((start) => table.query({ ...ranges.fleet, newer: "kept", ...start }))) {
    if (isNewer(row)) unreadable.add(clusterOf(row));
    else clusters.push(row);
  }
  return { clusters, unreadable };
}

/** The same blobs, each that is there read once: a rollout is planned in pages, and every page needs the whole list. */
export function rememberingBlobs(blobs: BlobStore): BlobStore {
  const known = new Map<string, Promise<Uint8Array>>();
  return {
    putOnce(key, bytes) {
      known.delete(key);
      return blobs.putOnce(key, bytes);
    },
    overwrite(key, bytes) {
      known.delete(key);
      return blobs.overwrite(key, bytes);
    },
    get(key) {
      const bytes =
        known.get(key) ??
        blobs.get(key).catch((error: unknown) => {
          known.delete(key);
          throw error;
        });
      known.set(key, bytes);
      return bytes;
    },
  };
}

/** A list of members as a rollout was planned with: a crash while planning resumes with the same list. */
export interface StoredMember extends Member {
  readonly leaving?: true;
}

export async function storeMembers(blobs: BlobStore, members: readonly StoredMember[]): Promise<string> {
  const key = blobKeys.members(digestOf(members));
  // Over whatever is there: a list that was changed is mended by it.
  await blobs.overwrite(key, Buffer.from(canonicalJson(members)));
  return key;
}

/** @throws StarlingError `BlobNotFound`, `BlobCorrupt`; see recall-members.ts */
export async function readMembers(blobs: BlobStore, key: string): Promise<readonly StoredMember[]> {
  return JSON.parse(await storedText(blobs, key, blobKeys.members));
}
