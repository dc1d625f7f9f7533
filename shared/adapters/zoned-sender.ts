import { homeZone } from "#shared/fleet/kinds/zone-name.ts";
import { zoneOfEntry } from "#shared/fleet/rows/cluster-entry.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { type ServedNames, servesName } from "#shared/fleet/served-names.ts";
import type { Message } from "#shared/messages.ts";
import type { MessageSender, Table } from "#shared/ports.ts";

/**
 * Sends messages about clusters to the workers of the clusters' zones. It reads the fleet's directory for clusters whose
 * zone the caller does not know, and reads nothing where `home` is the only zone. The workers of `home` report clusters
 * whose zone does not serve their names.
 */
export function zonedSender(sender: MessageSender, { zones, served, table }: ZonedPorts): MessageSender {
  if (zones.size === 0) return sender;
  return {
    send: async (messages) => {
      const zoned = await inZones(messages, table);
      return sender.send(zoned.map((each) => (isServed(each, served) ? each : { ...each, zone: homeZone })));
    },
  };
}

function isServed(message: Message, served: ServedNames): boolean {
  return message.to !== "apply" || message.zone === undefined || servesName(served, message.zone, message.cluster);
}

interface ZonedPorts {
  /** The zones besides `home`. */
  readonly zones: ReadonlyMap<string, unknown>;
  readonly served: ServedNames;
  readonly table: Pick<Table, "getMany">;
}

/** A cluster without an entry, or with one that only a newer version can read, belongs to `home`: its worker says why. */
async function inZones(messages: readonly Message[], table: Pick<Table, "getMany">): Promise<readonly Message[]> {
  const unknown = new Set(
    messages.flatMap((each) => (each.to === "apply" && each.zone === undefined ? [each.cluster] : [])),
  );
  if (unknown.size === 0) return messages;
  const entries = await table.getMany([...unknown].map(keys.fleet), { newer: "kept" });
  const zoneOf = new Map(entries.flatMap((row) => (row.type === "Fleet" ? [[row.name, zoneOfEntry(row)]] : [])));
  return messages.map((each) =>
    each.to === "apply" && each.zone === undefined ? { ...each, zone: zoneOf.get(each.cluster) ?? homeZone } : each,
  );
}
