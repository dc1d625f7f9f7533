import * as z from "zod";

/**
 * Environment of `api`. The function reads no value of a secret. It reads snapshots and inventories of the blobs, and
 * renderings to name the objects that a rollback changes, without their values. For the others it signs URLs.
 */
export const apiEnv = z.object({
  STARLING_TABLE: z.string().min(1),
  STARLING_BUCKET: z.string().min(1),
  STARLING_QUEUE_RESOLVE: z.url(),
  STARLING_QUEUE_DISCOVER: z.url(),
  STARLING_QUEUE_ROLLOUT: z.url(),
  /** Queue to inform clusters of a thaw. */
  STARLING_QUEUE_APPLY: z.url(),
  /** Queues of the zones besides `home`, which `zoneQueues` of shared/fleet/zone-parts.ts reads. Absent where there are none. */
  STARLING_ZONE_QUEUES: z.string().min(1).optional(),
  /** Patterns of the names of clusters that zones serve: `spoke=eu-*+fra-1`. Absent where each zone serves every name. */
  STARLING_ZONE_CLUSTERS: z.string().min(1).optional(),
  /** The networks of these zones, with their fixed addresses: `fixed=vpc+192.0.2.1+192.0.2.2,spoke=subnets,far=none`. */
  STARLING_ZONE_NETWORKS: z.string().min(1).optional(),
  /** The zone from which Sources are read; `home` is outside of every VPC. `-` where there are no networks. */
  STARLING_RESOLVE_ZONE: z.string().min(1),
  /** Dead-letter queues, whose messages are counted. */
  STARLING_DEAD_QUEUE_RESOLVE: z.url(),
  STARLING_DEAD_QUEUE_ROLLOUT: z.url(),
  STARLING_DEAD_QUEUE_RENDER: z.url(),
  STARLING_DEAD_QUEUE_APPLY: z.url(),
  STARLING_DEAD_QUEUE_APPLY_SLOW: z.url(),
  STARLING_DEAD_QUEUE_REPORT: z.url(),
  STARLING_DEAD_QUEUE_TICK: z.url(),
  /** ARN, to report whether the secret has a value. */
  STARLING_WEBHOOK_SECRET: z.string().min(1),
  /** Name, to report which function is silent. */
  STARLING_TICK_FUNCTION: z.string().min(1),
  /** Size of the fleet that the stacks are for. */
  STARLING_CLUSTERS: z.coerce.number().int().positive(),
  /** Concurrent executions that the stacks were deployed for, and those that such a fleet needs. */
  STARLING_CONCURRENCY: z.coerce.number().int().positive(),
  STARLING_CONCURRENCY_DESIRED: z.coerce.number().int().positive(),
  /** Names of the functions' log groups: `api=name,tick=name`. Those of zones follow from their queues. */
  STARLING_LOG_GROUPS: z.string().regex(/^[a-z][a-z0-9-]*=[^,=]+(,[a-z][a-z0-9-]*=[^,=]+)*$/),
  /** Prefix of the external ids that the roles of Clusters trust. */
  STARLING_INSTALLATION: z.string().min(1),
  /** The guard of groups that have none of their own, as JSON, or "none". */
  STARLING_GUARD: z.string().min(1),
  /** Buckets that Sources may read, as in the setting `sourceBuckets`; absent for none. */
  STARLING_SOURCE_BUCKETS: z.string().min(1).optional(),
  /** Patterns of the names of roles whose sessions have the names of people: `AWSReservedSSO_*,person-*`. */
  STARLING_PERSONAL_ROLES: z.string().min(1),
});
export type ApiEnv = z.infer<typeof apiEnv>;
