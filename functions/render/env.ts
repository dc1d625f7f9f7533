import * as z from "zod";

/** Environment of `render`. The function has no secret, reaches no cluster and no git host, and reads no byte of a repository. */
export const renderEnv = z.object({
  STARLING_TABLE: z.string().min(1),
  STARLING_BUCKET: z.string().min(1),
  STARLING_QUEUE_RESOLVE: z.url(),
  STARLING_QUEUE_ROLLOUT: z.url(),
  STARLING_BUILD_FUNCTION: z.string().min(1),
  /** Number of renderings at once. */
  STARLING_RENDER_CONCURRENCY: z.coerce.number().int().positive(),
});
export type RenderEnv = z.infer<typeof renderEnv>;
