import * as z from "zod";

/** Environment of `rollout`, the planner. */
export const rolloutEnv = z.object({
  STARLING_TABLE: z.string().min(1),
  STARLING_BUCKET: z.string().min(1),
  STARLING_INSTALLATION: z.string().min(1),
  /** Its own queue: the planner continues in another call, and sets when a failed message returns. */
  STARLING_QUEUE_ROLLOUT: z.url(),
  STARLING_QUEUE_RENDER: z.url(),
  STARLING_QUEUE_APPLY: z.url(),
  /** Queues of the zones besides `home`, which `zoneQueues` of shared/fleet/zone-parts.ts reads. Absent where there are none. */
  STARLING_ZONE_QUEUES: z.string().min(1).optional(),
  /** Patterns of the names of clusters that zones serve: `spoke=eu-*+fra-1`. Absent where each zone serves every name. */
  STARLING_ZONE_CLUSTERS: z.string().min(1).optional(),
  STARLING_QUEUE_REPORT: z.url(),
  /** The guard of groups that have none of their own, as JSON, or "none". */
  STARLING_GUARD: z.string().min(1),
});
export type RolloutEnv = z.infer<typeof rolloutEnv>;
