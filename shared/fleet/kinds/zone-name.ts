import { boundedText } from "#shared/base/bounded.ts";

/** The zone that every installation has. Its workers run where the other functions run. */
export const homeZone = "home";

/**
 * The name of a zone, as the setting `zones` and Clusters have it. SQS takes names of 80 characters: with the longest
 * installation and the longest queue, 18 are left for a zone.
 */
export const zoneName = boundedText(18).regex(
  /^[a-z]([a-z0-9-]*[a-z0-9])?$/,
  "must be the name of a zone: at most 18 small letters, digits and dashes, a letter first and no dash last",
);
