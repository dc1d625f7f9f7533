/** The exports for other CDK apps: `import { Starling } from "starling/infra"`. */
export { StarlingClusterAccess, type StarlingClusterAccessProps } from "#infra/constructs/starling-cluster-access.ts";
export {
  StarlingDiscoveryAccess,
  type StarlingDiscoveryAccessProps,
} from "#infra/constructs/starling-discovery-access.ts";
export type { StarlingSettings } from "#infra/settings.ts";
export { Starling, type StarlingProps } from "#infra/starling.ts";
export { StarlingZone, type StarlingZoneProps } from "#infra/starling-zone.ts";
