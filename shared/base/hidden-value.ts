import type * as z from "zod";

/** Marks an issue about a value that must not be shown, because it may be a key in the wrong field. */
export const hiddenValue = { hidden: true } as const;

export function isHidden(issue: z.core.$ZodIssue): boolean {
  return issue.code === "custom" && issue.params?.hidden === true;
}
