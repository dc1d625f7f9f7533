import type { Clock } from "#shared/base/clock.ts";
import type { AccountConcurrency } from "#shared/fleet/api/installation.ts";
import type { ZoneObject } from "#shared/fleet/api/zone-object.ts";
import type { GuardSpec } from "#shared/fleet/kinds/guard-spec.ts";
import type { ServedNames } from "#shared/fleet/served-names.ts";
import type { BucketRules } from "#shared/fleet/source-buckets.ts";
import type {
  AccountReader,
  BlobLinks,
  BlobStore,
  Ids,
  Log,
  LogReader,
  MessageSender,
  Table,
  UploadPlaces,
} from "#shared/ports.ts";

/** Everything that the API for people uses. */
export interface ApiPorts {
  readonly table: Table;
  /** For snapshots, for the inventories that workers store, and for the renderings that a rollback compares. */
  readonly blobs: Pick<BlobStore, "get">;
  /** For URLs of renderings and artifacts: they are larger than an answer of the API, so callers read them directly. */
  readonly links: BlobLinks;
  /** For what CI uploads. */
  readonly uploads: UploadPlaces;
  readonly sender: MessageSender;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  /** The logs of all functions. */
  readonly logs: LogReader;
  readonly installation: string;
  /** The guard of groups that have none of their own. */
  readonly defaultGuard?: GuardSpec | undefined;
  /** Patterns of the names of roles whose sessions have the names of people; absent for those of IAM Identity Center. */
  readonly personalRoles?: readonly string[] | undefined;
  /** The buckets that Sources may read; absent where nothing knows them. */
  readonly bucketRules?: BucketRules | undefined;
  /** The names of clusters that they serve; absent where each serves every name. */
  readonly servedNames?: ServedNames | undefined;
  /** The zones of the installation besides `home`, with their networks; absent where nothing knows them. */
  readonly zoneNetworks?: readonly ZoneObject[] | undefined;
  /** The zone from which Sources are read; absent where nothing knows it. */
  readonly resolveZone?: string | undefined;
  readonly account: AccountReader;
  readonly own: OwnParts;
}

/** Names that the stacks give to the parts of the installation whose state the API reports. */
export interface OwnParts {
  readonly webhookSecretArn: string;
  /** Name of the function. */
  readonly tickFunction: string;
  /** URLs of dead-letter queues, by the function that failed on their messages. */
  readonly deadLetters: Readonly<Record<string, string>>;
  readonly concurrency: Omit<AccountConcurrency, "account">;
}

/**
 * The person who asks for a write, and the reason. The principal comes from the signature of the request, never from
 * its body.
 */
export interface Caller {
  readonly principal: string;
  readonly reason?: string;
}
