import * as z from "zod";

const durationParts = /^(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?$/;

/**
 * A duration such as `30s`, `5m` or `1h30m`, in whole seconds.
 * @returns undefined when the text is no duration.
 */
export function durationSeconds(text: string): number | undefined {
  const parts = durationParts.exec(text);
  if (text === "" || parts === null) return undefined;
  return Number(parts[1] ?? 0) * 3600 + Number(parts[2] ?? 0) * 60 + Number(parts[3] ?? 0);
}

/**
 * Seconds of a duration that the schema has accepted, or of its default.
 * @throws Error for any other text: the api did not write the row.
 */
export function secondsOf(duration: string): number {
  const seconds = durationSeconds(duration);
  if (seconds === undefined) throw new Error(`${JSON.stringify(duration)} in a spec is no duration`);
  return seconds;
}

/** The shortest text of a duration: `10s`, `15m`, `1h30m`. */
function durationText(seconds: number): string {
  const parts = [
    [Math.floor(seconds / 3600), "h"],
    [Math.floor(seconds / 60) % 60, "m"],
    [seconds % 60, "s"],
  ] as const;
  const text = parts.flatMap(([number, unit]) => (number === 0 ? [] : [`${number}${unit}`])).join("");
  return text === "" ? "0s" : text;
}

/** A duration field with bounds in seconds; specs keep the text of the user. */
export function durationSchema(bounds: { readonly minSeconds: number; readonly maxSeconds: number }) {
  const { minSeconds, maxSeconds } = bounds;
  const isWithin = (seconds: number | undefined) =>
    seconds !== undefined && seconds >= minSeconds && seconds <= maxSeconds;
  const desired = `must be a duration such as 30s, 5m or 1h30m, from ${durationText(minSeconds)} to ${durationText(maxSeconds)}`;
  const meant = (input: unknown) => {
    const text = likelyDuration(input);
    return isWithin(durationSeconds(text)) ? `${desired}: write ${text}` : desired;
  };
  return z
    .string({ error: ({ input }) => meant(input) })
    .refine((text) => isWithin(durationSeconds(text)), { error: ({ input }) => meant(input) });
}

/** The suggestion for a number without a unit, for days and weeks, or for blanks and words: `10s` for `10`. */
function likelyDuration(input: unknown): string {
  if (typeof input === "number") return `${input}s`;
  if (typeof input !== "string") return "";
  const text = input.toLowerCase().replaceAll(/\s+/g, "");
  if (/^\d{1,9}$/.test(text)) return `${text}s`;
  const [, count, unit] = /^(\d{1,4})(d(?:ays?)?|w(?:eeks?)?)$/.exec(text) ?? [];
  if (count !== undefined) return `${Number(count) * 24 * (unit?.startsWith("w") ? 7 : 1)}h`;
  return text.replaceAll(/(\d)(h|m|s)(?:ours?|in(?:utes?)?|rs?|ec(?:onds?)?)?(?=\d|$)/g, "$1$2");
}

const desiredCount = 'must be a whole number such as 3, or a percentage from "0%" to "100%"';

/** A count of clusters: `3` or `"10%"`. */
export const clusterCountSchema = z.union(
  [
    z.number().int("must be a whole number or a percentage").min(0, "must not be negative"),
    z.string().regex(/^(100|[1-9]?\d)%$/, {
      error: ({ input }) =>
        typeof input === "string" && /^\d+$/.test(input)
          ? `${desiredCount}: remove the quotes for a number`
          : desiredCount,
    }),
  ],
  desiredCount,
);
export type ClusterCount = z.infer<typeof clusterCountSchema>;

/** The number of clusters that a count means among `total`; percentages round down by default. */
export function resolveCount(count: ClusterCount, total: number, rounding: "down" | "up" = "down"): number {
  if (typeof count === "number") return count;
  const share = (total * Number(count.slice(0, -1))) / 100;
  return rounding === "up" ? Math.ceil(share) : Math.floor(share);
}
