import * as z from "zod";

/** Environment of `resolve`. */
export const resolveEnv = z.object({
  STARLING_TABLE: z.string().min(1),
  STARLING_BUCKET: z.string().min(1),
  /** Buckets that Sources may read, as in the setting `sourceBuckets`; absent for none. */
  STARLING_SOURCE_BUCKETS: z.string().min(1).optional(),
  STARLING_QUEUE_ROLLOUT: z.url(),
  /** Its own queue, for other Sources: those that wait for a turn, and those that include one that has changed. */
  STARLING_QUEUE_RESOLVE: z.url(),
  /** Name of the installation, which its events carry: several installations may share a bus. */
  STARLING_INSTALLATION: z.string().min(1),
  /** Name or ARN of the bus for events; `none` for none. */
  STARLING_EVENT_BUS: z.string().min(1),
  /** Prefix of the names of the secrets that it may read. */
  STARLING_SECRET_PREFIX: z.string().min(1),
  /** Lists what Sources may read with the function's own role, such as `arn:aws:ecr:eu-west-1:111122223333:repository/shop:shop`. */
  STARLING_AWS_SOURCES: z.string().min(1).optional(),
  /** Private hosts and address ranges that git may be fetched from, such as `git.corp.example,10.20.0.0/16`. */
  STARLING_GIT_ALLOW: z.string().optional(),
  /** The zone from whose network it reads; `home` is outside of every VPC. `-` where there are no networks. */
  STARLING_RESOLVE_ZONE: z.string().min(1),
  /** File of PEM certificates to trust besides the public authorities. */
  STARLING_GIT_CA_FILE: z.string().min(1).optional(),
});
export type ResolveEnv = z.infer<typeof resolveEnv>;
