import { z } from "zod";
import { boundedList, boundedText } from "#shared/domain/kinds/bounded.ts";
import { API_VERSION, namespacedMetadata } from "#shared/domain/kinds/metadata.ts";
import { durationSchema } from "#shared/domain/kinds/quantities.ts";

const refName = boundedText(500)
  .min(1, "must not be empty")
  .regex(/^[^\s\p{Cc}~^:?*[\\]+$/u, "is not a git reference name");

/** Exactly one of branch, tag, semver or commit; none of them: the remote's HEAD. */
export const gitRefSchema = z
  .strictObject({
    branch: refName.optional(),
    tag: refName.optional(),
    semver: boundedText(512).min(1, "must be a version range such as >=1.2.0 <2").optional(),
    tagPrefix: refName.optional(),
    commit: z
      .string()
      .regex(/^[0-9a-f]{40}$/, "must be a full commit id: 40 hexadecimal digits in lower case")
      .optional(),
  })
  .refine(
    (ref) => [ref.branch, ref.tag, ref.semver, ref.commit].filter((part) => part !== undefined).length === 1,
    "needs exactly one of branch, tag, semver or commit (leave ref out to follow the remote's HEAD)",
  )
  .refine((ref) => ref.tagPrefix === undefined || ref.semver !== undefined, {
    message: "goes with semver only",
    path: ["tagPrefix"],
  });
export type GitReference = z.infer<typeof gitRefSchema>;

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
        secret: boundedText(512).min(1),
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
  apiVersion: z.literal(API_VERSION),
  kind: z.literal("Source"),
  metadata: namespacedMetadata,
  spec: sourceSpec,
});
