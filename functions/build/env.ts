import * as z from "zod";

/** Environment of `build`: nothing. What a job may reach is in the job. */
export const buildEnv = z.object({});
export type BuildEnv = z.infer<typeof buildEnv>;
