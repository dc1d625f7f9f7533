import * as z from "zod";

/** Environment of `tick`: the queues of every row that can be due. */
export const tickEnv = z.object({
  STARLING_TABLE: z.string().min(1),
  /** Name of the installation: several installations may share an account's metrics. */
  STARLING_INSTALLATION: z.string().min(1),
  STARLING_QUEUE_RESOLVE: z.url(),
  STARLING_QUEUE_RENDER: z.url(),
  STARLING_QUEUE_DISCOVER: z.url(),
  STARLING_QUEUE_ROLLOUT: z.url(),
  STARLING_QUEUE_APPLY: z.url(),
  /** Queues of the zones besides `home`, which `zoneQueues` of shared/fleet/zone-parts.ts reads. Absent where there are none. */
  STARLING_ZONE_QUEUES: z.string().min(1).optional(),
  /** Patterns of the names of clusters that zones serve: `spoke=eu-*+fra-1`. Absent where each zone serves every name. */
  STARLING_ZONE_CLUSTERS: z.string().min(1).optional(),
});
export type TickEnv = z.infer<typeof tickEnv>;
