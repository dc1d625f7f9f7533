import type { DocumentProblem } from "#functions/api/request/refusal.ts";
import { nearestName } from "#shared/base/nearest-name.ts";
import type { Document } from "#shared/fleet/kinds/document.ts";
import { homeZone } from "#shared/fleet/kinds/zone-name.ts";

/** Zones that the installation does not have: no worker would reach the cluster. */
export function zoneProblems(
  document: Document,
  zones: ReadonlySet<string> | undefined,
): readonly Pick<DocumentProblem, "field" | "message">[] {
  if (document.kind !== "Cluster" || zones === undefined) return [];
  const zone = document.spec.access?.zone;
  if (zone === undefined || zone === homeZone || zones.has(zone)) return [];
  const known = [homeZone, ...zones];
  const nearest = nearestName(zone, known);
  const remedy = nearest === undefined ? "an operator adds it to the setting zones" : `did you mean ${nearest}?`;
  const message = `is ${zone}, but the installation has only the zones ${known.join(", ")}; ${remedy}`;
  return [{ field: "spec.access.zone", message }];
}
