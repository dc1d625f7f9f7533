import { readZones, type ZonesOf } from "#shared/adapters/known-zones.ts";
import { homeZone } from "#shared/fleet/kinds/zone-name.ts";
import { type ServedNames, servesName } from "#shared/fleet/served-names.ts";
import type { Message } from "#shared/messages.ts";
import type { MessageSender, Table } from "#shared/ports.ts";

/**
 * Sends messages about clusters to the workers of the clusters' zones. It looks up the zones of clusters that the caller
 * does not know, by default in the fleet's directory, and looks up nothing where `home` is the only zone. The workers of `home` report clusters
 * whose zone does not serve their names.
 */
export function zonedSender(sender: MessageSender, ports: ZonedPorts): MessageSender {
  const { zones, served, table, zonesOf = (clusters) => readZones(clusters, table) } = ports;
  if (zones.size === 0) return sender;
  return {
    send: async (messages) => {
      const zoned = await inZones(messages, zonesOf);
      return sender.send(zoned.map((each) => (isServed(each, served) ? each : { ...each, zone: homeZone })));
    },
  };
}

function isServed(message: Message, served: ServedNames): boolean {
  const { to, zone } = message;
  if (to !== "apply" || zone === undefined || message.cluster === undefined) return true;
  return servesName(served, zone, message.cluster);
}

interface ZonedPorts {
  /** The zones besides `home`. */
  readonly zones: ReadonlyMap<string, unknown>;
  readonly served: ServedNames;
  readonly table: Pick<Table, "getMany">;
  readonly zonesOf?: ZonesOf;
}

async function inZones(messages: readonly Message[], zonesOf: ZonesOf): Promise<readonly Message[]> {
  const unknown = new Set(messages.flatMap((each) => (isUnplaced(each) ? [each.cluster] : [])));
  if (unknown.size === 0) return messages;
  const zoneOf = await zonesOf([...unknown]);
  return messages.map((each) => (isUnplaced(each) ? { ...each, zone: zoneOf.get(each.cluster) ?? homeZone } : each));
}

/** Whether the message is about a cluster whose zone the sender does not know. */
function isUnplaced(each: Message): each is Message & { readonly to: "apply"; readonly cluster: string } {
  return each.to === "apply" && each.cluster !== undefined && each.zone === undefined;
}
