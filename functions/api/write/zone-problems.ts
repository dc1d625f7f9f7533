import type { ApiPorts } from "#functions/api/request/api-ports.ts";
import type { DocumentProblem } from "#functions/api/request/refusal.ts";
import { nearestName } from "#shared/base/nearest-name.ts";
import type { Document } from "#shared/fleet/kinds/document.ts";
import { homeZone } from "#shared/fleet/kinds/zone-name.ts";
import { notServedText, servesName } from "#shared/fleet/served-names.ts";

/** Zones that the installation does not have, or that do not serve the name: no worker would reach the cluster. */
export function zoneProblems(
  document: Document,
  { zoneNetworks, servedNames = new Map() }: Pick<ApiPorts, "zoneNetworks" | "servedNames">,
): readonly Pick<DocumentProblem, "field" | "message">[] {
  if (zoneNetworks === undefined) return [];
  const known = [homeZone, ...zoneNetworks.map(({ metadata }) => metadata.name)];
  return namedZones(document).flatMap(({ field, zone }) => {
    if (known.includes(zone)) {
      const { kind, metadata } = document;
      if (kind !== "Cluster" || servesName(servedNames, zone, metadata.name)) return [];
      return [{ field, message: `is ${zone}, which ${notServedText(servedNames, zone, metadata.name)}` }];
    }
    const nearest = nearestName(zone, known);
    const remedy = nearest === undefined ? "an operator adds it to the setting zones" : `did you mean ${nearest}?`;
    const message = `is ${zone}, but the installation has only the zones ${known.join(", ")}; ${remedy}`;
    return [{ field, message }];
  });
}

function namedZones({ kind, spec }: Document): readonly { readonly field: string; readonly zone: string }[] {
  if (kind !== "Cluster" && kind !== "ClusterDiscovery") return [];
  const { zone } = spec.access ?? {};
  const byVpc = kind === "ClusterDiscovery" ? Object.entries(spec.access?.zonesByVpc ?? {}) : [];
  return [
    ...(zone === undefined ? [] : [{ field: "spec.access.zone", zone }]),
    ...byVpc.map(([vpc, zoneOfVpc]) => ({ field: `spec.access.zonesByVpc.${vpc}`, zone: zoneOfVpc })),
  ];
}
