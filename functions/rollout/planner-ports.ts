import type { Clock } from "#shared/base/clock.ts";
import type { BlobStore, Ids, Log, MessageSender, Table } from "#shared/ports.ts";

export interface PlannerPorts {
  readonly table: Table;
  readonly blobs: BlobStore;
  readonly sender: MessageSender;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  /** Names this installation in the clusters; part of every Sync's uid. */
  readonly installation: string;
}
