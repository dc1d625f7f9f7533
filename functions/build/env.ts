import * as z from "zod";

/** Environment of `build`: empty, because each job carries the URLs that it may reach. */
export const buildEnv = z.object({});
export type BuildEnv = z.infer<typeof buildEnv>;
