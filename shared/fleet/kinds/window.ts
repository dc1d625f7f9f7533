import * as z from "zod";
import { boundedList } from "#shared/base/bounded.ts";
import { clusterSelectionSchema } from "#shared/fleet/kinds/cluster-selection.ts";
import { isCron, isTimeZone } from "#shared/fleet/kinds/cron.ts";
import { groupSelectionSchema } from "#shared/fleet/kinds/group-selection.ts";
import { installationMetadata, ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import { durationSchema } from "#shared/fleet/kinds/quantities.ts";

const mostTimes = 20;
const longestSeconds = 31 * 24 * 3600;

const instant = z.iso.datetime({
  offset: true,
  error: "must be a time with its zone, such as 2026-12-24T00:00:00Z or 2026-12-24T00:00:00+01:00",
});

const windowTime = z
  .strictObject({
    cron: z
      .string()
      .refine(isCron, 'must have five fields (minute, hour, day, month, weekday), such as "0 9 * * 1-5"')
      .optional(),
    duration: durationSchema({ minSeconds: 60, maxSeconds: longestSeconds }).optional(),
    timeZone: z.string().refine(isTimeZone, "must be a time zone such as Europe/London or UTC").optional(),
    start: instant.optional(),
    end: instant.optional(),
  })
  .refine(({ cron, duration, timeZone, start, end }) => {
    const repeated = [cron, duration, timeZone].filter((part) => part !== undefined).length;
    const once = [start, end].filter((part) => part !== undefined).length;
    return (repeated === 3 && once === 0) || (repeated === 0 && once === 2);
  }, "needs either cron, duration and timeZone, or start and end")
  .refine(
    ({ start, end }) => start === undefined || end === undefined || Date.parse(start) < Date.parse(end),
    "needs an end after its start",
  );

export const windowSpec = z
  .strictObject({
    /** Without them, every cluster. */
    clusters: clusterSelectionSchema.optional(),
    /** Without them, every SyncGroup, and every Sync that people wrote. */
    groups: groupSelectionSchema.optional(),
    /** A union; when empty, every time. */
    allow: boundedList(windowTime, mostTimes).default([]),
    /** Denied times are closed, also where they are allowed. */
    deny: boundedList(windowTime, mostTimes).default([]),
  })
  .refine(({ allow, deny }) => allow.length + deny.length > 0, "needs allow or deny: without them it does nothing")
  .refine(
    ({ clusters, groups }) => (clusters ?? groups) !== undefined,
    "needs clusters, groups, or both; write clusters: {all: true} for everything",
  );
export type WindowSpec = z.infer<typeof windowSpec>;

export const windowDocument = z.strictObject({
  apiVersion: z.literal(ourApiVersion),
  kind: z.literal("Window"),
  metadata: installationMetadata,
  spec: windowSpec,
});
