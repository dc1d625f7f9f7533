import * as z from "zod";

/** Environment of `api`. It reads no secret, and of blobs the lists of targets alone. */
export const apiEnv = z.object({
  STARLING_TABLE: z.string().min(1),
  STARLING_BUCKET: z.string().min(1),
  STARLING_QUEUE_RESOLVE: z.url(),
  STARLING_QUEUE_ROLLOUT: z.url(),
  /** To tell clusters of a thaw. */
  STARLING_QUEUE_APPLY: z.url(),
  /** To say what the roles of Clusters are to trust. */
  STARLING_INSTALLATION: z.string().min(1),
});
export type ApiEnv = z.infer<typeof apiEnv>;
