import { z } from "zod";

/** Environment of `api`. It reads no secret and no blob. */
export const apiEnv = z.object({
  STARLING_TABLE: z.string().min(1),
  STARLING_QUEUE_RESOLVE: z.url(),
  STARLING_QUEUE_ROLLOUT: z.url(),
});
export type ApiEnv = z.infer<typeof apiEnv>;
