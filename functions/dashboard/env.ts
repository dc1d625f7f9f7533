import * as z from "zod";

/** Environment of `dashboard`. It reads rows, the lists of targets and what Syncs hold, and writes nothing. */
export const dashboardEnv = z.object({
  STARLING_TABLE: z.string().min(1),
  STARLING_BUCKET: z.string().min(1),
  /** To say what the roles of Clusters are to trust. */
  STARLING_INSTALLATION: z.string().min(1),
});
export type DashboardEnv = z.infer<typeof dashboardEnv>;
