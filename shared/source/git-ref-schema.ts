import * as z from "zod";
import { boundedText } from "#shared/base/bounded.ts";

const notAName = "is not a git reference name";
const refPart = boundedText(500)
  .min(1, "must not be empty")
  .regex(/^[^\s\p{Cc}~^:?*[\\]+$/u, notAName);
/** With the rules of `git check-ref-format`. */
const wellFormed = refPart.refine(
  (text) => !/^\/|^-|\/$|\/\/|\.\.|\.$|@\{|^@$|(^|\/)\.|\.lock(\/|$)/.test(text),
  notAName,
);
/** A branch or a tag. */
const refName = wellFormed.refine(
  (text) => !/^refs\/(heads|tags)\//.test(text),
  "must be the name alone, without refs/heads/ or refs/tags/",
);

/** It sees the name of a tag as the upstream writes it, with its prefix. */
export const tagFilterSchema = boundedText(256).min(1, "must be a regular expression, such as -rc\\.");

/** Exactly one of branch, tag, semver, name or commit. Without a ref, the remote's HEAD counts. */
export const gitRefSchema = z
  .strictObject({
    branch: refName.optional(),
    tag: refName.optional(),
    semver: boundedText(512).min(1, "must be a version range such as >=1.2.0 <2").optional(),
    tagPrefix: refPart.optional(),
    tagFilter: tagFilterSchema.optional(),
    /** A full reference of any kind, such as `refs/pull/420/head`. */
    name: wellFormed
      .regex(
        /^refs\/[^/]+\/./,
        "must be the full name of a reference, as git ls-remote prints it, such as refs/pull/420/head",
      )
      .optional(),
    commit: z
      .string()
      .regex(/^[0-9a-f]{40}$/, "must be a full commit id: 40 hexadecimal digits in lower case")
      .optional(),
  })
  .refine(
    (ref) => [ref.branch, ref.tag, ref.semver, ref.name, ref.commit].filter((part) => part !== undefined).length === 1,
    "needs exactly one of branch, tag, semver, name or commit (leave ref out to follow the remote's HEAD)",
  )
  .refine((ref) => ref.tagPrefix === undefined || ref.semver !== undefined, {
    message: "may be set only together with semver",
    path: ["tagPrefix"],
  })
  .refine((ref) => ref.tagFilter === undefined || ref.semver !== undefined, {
    message: "may be set only together with semver",
    path: ["tagFilter"],
  });
export type GitReference = z.infer<typeof gitRefSchema>;

/** Whether the reference is a tag, or chosen among tags. */
export function namesTags(ref: GitReference | undefined): boolean {
  return (ref?.tag ?? ref?.semver) !== undefined || ref?.name?.startsWith("refs/tags/") === true;
}
