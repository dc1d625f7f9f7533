import * as z from "zod";

/** Environment of `apply`, a cluster's worker. */
export const applyEnv = z
  .object({
    STARLING_TABLE: z.string().min(1),
    STARLING_BUCKET: z.string().min(1),
    /** Installation, written to the parent object of every Sync: two installations never take each other's objects. */
    STARLING_INSTALLATION: z.string().min(1),
    /** Prefix of the names of the secrets that it may read. */
    STARLING_SECRET_PREFIX: z.string().min(1),
    STARLING_QUEUE_RENDER: z.url(),
    STARLING_QUEUE_APPLY: z.url(),
    STARLING_QUEUE_APPLY_SLOW: z.url(),
    STARLING_QUEUE_REPORT: z.url(),
    /** Addresses of its own machine that clusters may have, separated by commas. Only a local machine sets it. */
    STARLING_CLUSTER_ALLOW: z.string().optional(),
    /** The zone in which it runs. */
    STARLING_ZONE: z.string().min(1),
    /** In `home`: the other zones of the installation, separated by commas. Absent in other zones, or for none. */
    STARLING_ZONES: z.string().min(1).optional(),
    /**
     * Patterns of the names of clusters that zones serve, `spoke=eu-*+fra-1`: in `home` those of all zones, elsewhere those of
     * the own zone. Absent where they serve every name.
     */
    STARLING_ZONE_CLUSTERS: z.string().min(1).optional(),
    /** In a zone with a VPC of its own: the public addresses from which its requests come, separated by commas. */
    STARLING_ZONE_ADDRESSES: z.string().min(1).optional(),
    /** In a zone in subnets that existed before: its security groups, separated by commas. */
    STARLING_ZONE_SECURITY_GROUPS: z.string().min(1).optional(),
    /** In the same zone: the number of its subnets. */
    STARLING_ZONE_SUBNETS: z.coerce.number().int().positive().optional(),
    /** In a zone of another account or region: ARN of the role of the account of `home` for rows, blobs and its queues. */
    STARLING_DATA_ROLE: z.string().min(1).optional(),
    /** In such a zone: the region of `home`. */
    STARLING_HOME_REGION: z.string().min(1).optional(),
  })
  .refine((env) => (env.STARLING_DATA_ROLE === undefined) === (env.STARLING_HOME_REGION === undefined), {
    path: ["STARLING_HOME_REGION"],
    message:
      "goes together with STARLING_DATA_ROLE; set both in a zone of another account or region, and none elsewhere",
  });
export type ApplyEnv = z.infer<typeof applyEnv>;
