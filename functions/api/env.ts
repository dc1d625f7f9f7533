import * as z from "zod";

/** Environment of `api`. It reads no value of a secret, and of blobs lists of targets and inventories; to others it hands out URLs. */
export const apiEnv = z.object({
  STARLING_TABLE: z.string().min(1),
  STARLING_BUCKET: z.string().min(1),
  STARLING_QUEUE_RESOLVE: z.url(),
  STARLING_QUEUE_DISCOVER: z.url(),
  STARLING_QUEUE_ROLLOUT: z.url(),
  /** To tell clusters of a thaw. */
  STARLING_QUEUE_APPLY: z.url(),
  /** To say how many messages are in them: what was not worked off. */
  STARLING_DEAD_QUEUE_RESOLVE: z.url(),
  STARLING_DEAD_QUEUE_ROLLOUT: z.url(),
  STARLING_DEAD_QUEUE_RENDER: z.url(),
  STARLING_DEAD_QUEUE_APPLY: z.url(),
  STARLING_DEAD_QUEUE_APPLY_SLOW: z.url(),
  STARLING_DEAD_QUEUE_REPORT: z.url(),
  STARLING_DEAD_QUEUE_TICK: z.url(),
  /** ARN: to say whether it has a value. */
  STARLING_WEBHOOK_SECRET: z.string().min(1),
  /** Name: to say which function it is that is silent. */
  STARLING_TICK_FUNCTION: z.string().min(1),
  /** Size of the fleet that the stacks are for. */
  STARLING_CLUSTERS: z.coerce.number().int().positive(),
  /** Concurrent executions that they were deployed for, and those that such a fleet wants. */
  STARLING_CONCURRENCY: z.coerce.number().int().positive(),
  STARLING_CONCURRENCY_DESIRED: z.coerce.number().int().positive(),
  /** Names of the functions' log groups: `api=name,tick=name`. */
  STARLING_LOG_GROUPS: z.string().regex(/^[a-z]+=[^,=]+(,[a-z]+=[^,=]+)*$/),
  /** To say what the roles of Clusters are to trust. */
  STARLING_INSTALLATION: z.string().min(1),
});
export type ApiEnv = z.infer<typeof apiEnv>;
