import * as z from "zod";
import { boundedList, boundedText } from "#shared/base/bounded.ts";
import { clusterSelectionSchema } from "#shared/fleet/kinds/cluster-selection.ts";
import { cronProblem, timeZoneProblem } from "#shared/fleet/kinds/cron-problem.ts";
import { groupSelectionSchema } from "#shared/fleet/kinds/group-selection.ts";
import { installationMetadata, ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import { durationSchema } from "#shared/fleet/kinds/quantities.ts";

const mostTimes = 20;
const longestSeconds = 31 * 24 * 3600;

const zoned = "must be a time with its zone, such as 2026-12-24T00:00:00Z or 2026-12-24T00:00:00+01:00";
const instant = z.iso.datetime({
  offset: true,
  error: ({ input }) =>
    typeof input === "string" && /^\d{4}-\d\d-\d\dT\d\d:\d\d.*(?:Z|[+-]\d\d:\d\d)$/.test(input)
      ? `${zoned}, and of a day and an hour that exist`
      : zoned,
});

/** A text that the function finds no problem in. */
function checkedText(most: number, problemOf: (text: string) => string | undefined) {
  return boundedText(most).superRefine((text, context) => {
    const message = problemOf(text);
    if (message !== undefined) context.addIssue({ code: "custom", message });
  });
}

const windowTime = z
  .strictObject({
    cron: checkedText(200, cronProblem).optional(),
    duration: durationSchema({ minSeconds: 60, maxSeconds: longestSeconds }).optional(),
    timeZone: checkedText(64, timeZoneProblem).optional(),
    start: instant.optional(),
    end: instant.optional(),
  })
  .superRefine((time, context) => {
    const message = partsProblem(time);
    if (message !== undefined) context.addIssue({ code: "custom", message });
    const { start, end } = time;
    if (start !== undefined && end !== undefined && Date.parse(end) <= Date.parse(start))
      context.addIssue({ code: "custom", path: ["end"], message: `must be later than start, which is ${start}` });
  });

const repeatedParts = ["cron", "duration", "timeZone"] as const;
const singleParts = ["start", "end"] as const;

/** A time has all parts of one kind, and none of the other. */
function partsProblem(time: Readonly<Record<string, unknown>>): string | undefined {
  const [repeated = [], single = []] = [repeatedParts, singleParts].map((parts) =>
    parts.filter((part) => time[part] !== undefined),
  );
  const needs = "needs either cron, duration and timeZone, or start and end";
  if (repeated.length > 0 && single.length > 0) {
    const other = single.length === singleParts.length ? repeated : single;
    return `${needs}; remove ${other.join(" and ")}`;
  }
  if (repeated.length === 0 && single.length === 0) return needs;
  const all = repeated.length > 0 ? repeatedParts : singleParts;
  const lacking = all.filter((part) => time[part] === undefined);
  return lacking.length === 0 ? undefined : `${needs}; add ${lacking.join(" and ")}`;
}

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
