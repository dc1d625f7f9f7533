import type { Clock } from "#shared/base/clock.ts";
import type { Message } from "#shared/messages.ts";
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

/** What one step came to: messages to send now that it is written, and whether to look again at once. */
interface Step {
  readonly messages: readonly Message[];
  readonly again: boolean;
}
