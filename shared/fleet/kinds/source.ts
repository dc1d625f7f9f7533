import * as z from "zod";
import { boundedList, boundedText } from "#shared/base/bounded.ts";
import { namespacedMetadata, ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import { durationSchema } from "#shared/fleet/kinds/quantities.ts";
import { secretName } from "#shared/fleet/kinds/secret-name.ts";
import { gitRefSchema } from "#shared/source/git-ref-schema.ts";

export const partPath = boundedText(1024).regex(
  /^(\.|(?!\.\.?(\/|$))[^/\0]+(\/(?!\.\.?(\/|$))[^/\0]+)*)$/,
  'must be a relative path without "..", such as deploy/base, or "." for everything',
);

export const sourceSpec = z.strictObject({
  git: z.strictObject({
    url: boundedText(2048).min(1),
    ref: gitRefSchema.optional(),
    credentials: z
      .strictObject({
        /** Name of a secret: JSON with `host`, and `username` and `password` (basic) or `token` (bearer). */
        secret: secretName,
        kind: z.enum(["basic", "bearer"], 'must be "basic" or "bearer"'),
      })
      .optional(),
  }),
  paths: boundedList(partPath, 100)
    .min(1, "must name at least one path; leave it out for the whole repository")
    .default(["."]),
  interval: durationSchema({ minSeconds: 10, maxSeconds: 86_400 }).default("5m"),
});
export type SourceSpec = z.infer<typeof sourceSpec>;

export const sourceDocument = z.strictObject({
  apiVersion: z.literal(ourApiVersion),
  kind: z.literal("Source"),
  metadata: namespacedMetadata,
  spec: sourceSpec,
});
