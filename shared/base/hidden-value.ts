import type * as z from "zod";

/** Parameters of a custom issue about a value that is not to be shown: it may be a key that got into the wrong field. */
export const hiddenValue = { hidden: true } as const;

export function isHidden(issue: z.core.$ZodIssue): boolean {
  return issue.code === "custom" && issue.params?.hidden === true;
}
