import * as z from "zod";

/** Environment of `discover`. */
export const discoverEnv = z.object({
  STARLING_TABLE: z.string().min(1),
  /** First part of the external ids that it presents. */
  STARLING_INSTALLATION: z.string().min(1),
  /** Region where the function runs; the STS of this region issues all sessions. */
  STARLING_REGION: z.string().min(1),
  STARLING_QUEUE_ROLLOUT: z.url(),
  /** Zones of VPCs, by the setting: `vpc-0a1b2c3d=fixed,vpc-1a2b3c4d=spoke`. Absent where no zone names a VPC. */
  STARLING_ZONE_VPCS: z.string().min(1).optional(),
  /** Patterns of the names of clusters that zones serve: `spoke=eu-*+fra-1`. Absent where each zone serves every name. */
  STARLING_ZONE_CLUSTERS: z.string().min(1).optional(),
});
export type DiscoverEnv = z.infer<typeof discoverEnv>;
