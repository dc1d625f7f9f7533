import { storedList } from "#shared/adapters/stored-list.ts";
import type { Clock } from "#shared/base/clock.ts";
import { sha256 } from "#shared/base/digest.ts";
import { canonicalJson } from "#shared/base/json.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import type { GuardSpec } from "#shared/fleet/kinds/guard-spec.ts";
import type { Member } from "#shared/fleet/rollout/desired-plan.ts";
import type { Known } from "#shared/fleet/rollout/facts.ts";
import type { ServingZones } from "#shared/fleet/rows/cluster-entry.ts";
import type { BlobStore, Ids, Log, MessageSender, Table } from "#shared/ports.ts";

/** The ports of a call. */
export interface GivenPorts extends ServingZones {
  readonly table: Table;
  readonly blobs: BlobStore;
  readonly sender: MessageSender;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  /** Names this installation in the clusters; part of every Sync's uid. */
  readonly installation: string;
  /** The guard of groups that have none of their own. */
  readonly defaultGuard?: GuardSpec | undefined;
}

/** The ports of its steps: a list that one of them has read is there for the next. */
export interface PlannerPorts extends Omit<GivenPorts, "blobs"> {
  readonly lists: Lists;
  readonly blobs: Pick<BlobStore, "renew">;
}

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

/** @throws StarlingError when the list is lost. */
export async function readMembers({ rolloutState }: Known, ports: PlannerPorts): Promise<readonly Member[]> {
  return rolloutState.members === undefined ? [] : ports.lists.read<Member>(rolloutState.members);
}

/** Members in their order: another list has another order. */
export const nobodyChecked = { checked: 0, counts: { ready: 0, changing: 0, failed: 0, unreachable: 0, waiting: 0 } };
