import type { Lists } from "#functions/rollout/read/lists.ts";
import type { Clock } from "#shared/base/clock.ts";
import type { BlobStore, Ids, Log, MessageSender, Table } from "#shared/ports.ts";

/** The ports of a call. */
export interface GivenPorts {
  readonly table: Table;
  readonly blobs: BlobStore;
  readonly sender: MessageSender;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  /** Names this installation in the clusters; part of every Sync's uid. */
  readonly installation: string;
}

/** The ports of its steps: a list that one of them has read is there for the next. */
export interface PlannerPorts extends Omit<GivenPorts, "blobs"> {
  readonly lists: Lists;
  readonly blobs: Pick<BlobStore, "renew">;
}
