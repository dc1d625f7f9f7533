import { homeZone } from "#shared/fleet/kinds/zone-name.ts";

/** The place from which Sources are read. An installation without networks names no zone. */
export function readingPlace(zone: string | undefined): string {
  if (zone === undefined) return "read from the machine of the installation";
  return zone === homeZone
    ? "read from zone home: public hosts only (setting resolveZone)"
    : `read from zone ${zone} (setting resolveZone)`;
}
