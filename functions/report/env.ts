import * as z from "zod";

/** Environment of `report`. */
export const reportEnv = z.object({
  STARLING_TABLE: z.string().min(1),
  /** Metrics of several installations may be in one account. */
  STARLING_INSTALLATION: z.string().min(1),
  STARLING_QUEUE_ROLLOUT: z.url(),
});
export type ReportEnv = z.infer<typeof reportEnv>;
