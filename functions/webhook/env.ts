import * as z from "zod";

/** Environment of `webhook`. */
export const webhookEnv = z.object({
  STARLING_TABLE: z.string().min(1),
  STARLING_QUEUE_RESOLVE: z.url(),
  /** Name of the secret: a JSON array of one or two strings, so that senders can move from one to the other. */
  STARLING_WEBHOOK_SECRET: z.string().min(1),
  /** Prefix of the names of the secrets of Receivers. */
  STARLING_SECRET_PREFIX: z.string().min(1),
  /** Private hosts and address ranges whose issuers may be asked, as for Sources. */
  STARLING_GIT_ALLOW: z.string().optional(),
  /** The zone from whose network issuers are asked; `home` is outside of every VPC. `-` where there are no networks. */
  STARLING_RESOLVE_ZONE: z.string().min(1),
  /** File of PEM certificates to trust besides the public authorities. */
  STARLING_GIT_CA_FILE: z.string().min(1).optional(),
});
export type WebhookEnv = z.infer<typeof webhookEnv>;
