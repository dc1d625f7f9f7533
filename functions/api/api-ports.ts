import type { Clock } from "#shared/base/clock.ts";
import type { AccountConcurrency } from "#shared/fleet/api/installation.ts";
import type { AccountReader, BlobLinks, BlobStore, Ids, Log, LogReader, MessageSender, Table } from "#shared/ports.ts";

/** Everything the door for people touches. */
export interface ApiPorts {
  readonly table: Table;
  /** For the lists of targets that were sealed, and for what workers have recorded of objects. */
  readonly blobs: Pick<BlobStore, "get">;
  /** For renderings and artifacts, which who may have them reads past the door: they are larger than its answers. */
  readonly links: BlobLinks;
  readonly sender: MessageSender;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  /** Of all functions. */
  readonly logs: LogReader;
  readonly installation: string;
  readonly account: AccountReader;
  readonly own: OwnParts;
}

/** What the stacks call parts of the installation that people are told how they are. */
export interface OwnParts {
  readonly webhookSecretArn: string;
  /** Name of the function. */
  readonly tickFunction: string;
  /** URLs of queues, by the function that did not get done what is in them. */
  readonly deadLetters: Readonly<Record<string, string>>;
  readonly concurrency: Omit<AccountConcurrency, "account">;
}

/** Who asks for a write, and why: the principal comes from the signature of the request, never from its body. */
export interface Caller {
  readonly principal: string;
  readonly reason?: string;
}
