import * as z from "zod";
import { clusterCountSchema, durationSchema } from "#shared/fleet/kinds/quantities.ts";

/** How much may be added to a group, deleted from it, and pruned, before somebody is asked. */
export const guardSchema = z.strictObject(
  {
    /** Clusters that may join; a percentage is of the members at the start of the window, and rounds down. */
    additions: clusterCountSchema.default("100%"),
    /** Clusters that may lose something: those that leave the selection, and those of a dropped template. */
    deletions: clusterCountSchema.default(0),
    /** Objects of one Sync that one rollout may prune; a percentage is of those before it, and counts from five on. */
    objects: clusterCountSchema.default("50%"),
    /** The window, which ends now. */
    per: durationSchema({ minSeconds: 60, maxSeconds: 2_592_000 }).default("24h"),
  },
  {
    error: ({ code }) =>
      code === "invalid_type"
        ? "must be a map of fields; a guard that withholds no deletion is { deletions: 100%, objects: 100% }"
        : undefined,
  },
);
export type GuardSpec = z.infer<typeof guardSchema>;

/** A guard as JSON. */
export const guardAsJson = z
  .string()
  .transform((text, context): unknown => {
    try {
      return JSON.parse(text);
    } catch {
      context.addIssue({ code: "custom", message: "must be JSON" });
      return z.NEVER;
    }
  })
  .pipe(guardSchema);

/**
 * @param setting - JSON, or "none".
 * @returns the guard of groups that have none of their own. @throws ZodError
 */
export function defaultGuardOf(setting: string): GuardSpec | undefined {
  return setting === "none" ? undefined : guardAsJson.parse(setting);
}
