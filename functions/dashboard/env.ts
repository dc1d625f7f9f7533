import * as z from "zod";

/** Environment of `dashboard`. The function reads rows, snapshots and inventories, and writes nothing. */
export const dashboardEnv = z.object({
  STARLING_TABLE: z.string().min(1),
  STARLING_BUCKET: z.string().min(1),
  /** Prefix of the external ids that the roles of Clusters trust. */
  STARLING_INSTALLATION: z.string().min(1),
});
export type DashboardEnv = z.infer<typeof dashboardEnv>;
