import * as z from "zod";

/** Environment of `render`. No secret, and nothing that reaches a cluster or a git host; no byte of a repository is read. */
export const renderEnv = z.object({
  STARLING_TABLE: z.string().min(1),
  STARLING_BUCKET: z.string().min(1),
  STARLING_QUEUE_RESOLVE: z.url(),
  STARLING_QUEUE_ROLLOUT: z.url(),
  STARLING_BUILD_FUNCTION: z.string().min(1),
  /** How many renderings are made at once. */
  STARLING_RENDER_CONCURRENCY: z.coerce.number().int().positive(),
});
export type RenderEnv = z.infer<typeof renderEnv>;
