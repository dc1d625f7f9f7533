import * as z from "zod";

/** Environment of `discover`. */
export const discoverEnv = z.object({
  STARLING_TABLE: z.string().min(1),
  /** First part of the external ids that it presents. */
  STARLING_INSTALLATION: z.string().min(1),
  /** Region where the function runs; the STS of this region issues all sessions. */
  STARLING_REGION: z.string().min(1),
  STARLING_QUEUE_ROLLOUT: z.url(),
});
export type DiscoverEnv = z.infer<typeof discoverEnv>;
