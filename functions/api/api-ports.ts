import type { Clock } from "#shared/base/clock.ts";
import type { BlobStore, Ids, Log, MessageSender, Table } from "#shared/ports.ts";

/** Everything the door for people touches. */
export interface ApiPorts {
  readonly table: Table;
  /** For the lists of targets that were sealed. */
  readonly blobs: Pick<BlobStore, "get">;
  readonly sender: MessageSender;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly installation: string;
}

/** Who asks for a write, and why: the principal comes from the signature of the request, never from its body. */
export interface Caller {
  readonly principal: string;
  readonly reason?: string;
}
