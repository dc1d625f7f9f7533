import type { ZonesOfVpcs } from "#shared/fleet/discovery/zone-of-vpc.ts";

/** @param text - `vpc-0a1b2c3d=fixed,vpc-1a2b3c4d=spoke`; absent where no zone names a VPC. */
export function parseZoneVpcs(text: string | undefined): ZonesOfVpcs {
  return new Map(text?.split(",").map((pair) => pair.split("=") as [string, string]));
}
