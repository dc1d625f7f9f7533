import type { EksInventory } from "#shared/adapters/aws/eks-inventory.ts";
import type { Clock } from "#shared/base/clock.ts";
import type { ZonesOfVpcs } from "#shared/fleet/discovery/zone-of-vpc.ts";
import type { ServedNames } from "#shared/fleet/served-names.ts";
import type { Ids, Log, MessageSender, Table } from "#shared/ports.ts";

export interface DiscoverPorts {
  readonly table: Table;
  readonly sender: MessageSender;
  readonly inventory: Pick<EksInventory, "names" | "tags" | "parameters" | "describe" | "accountsOf">;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly installation: string;
  readonly zonesOfVpcs: ZonesOfVpcs;
  /** The names of clusters that zones serve. */
  readonly served: ServedNames;
}
