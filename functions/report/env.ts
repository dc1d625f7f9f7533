import * as z from "zod";

/** Environment of `report`. */
export const reportEnv = z.object({
  STARLING_TABLE: z.string().min(1),
  /** Name of the installation: several installations may share an account's metrics. */
  STARLING_INSTALLATION: z.string().min(1),
  STARLING_QUEUE_ROLLOUT: z.url(),
});
export type ReportEnv = z.infer<typeof reportEnv>;
