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

/** The name of a zone as a part of the names of outputs: `SpokeEu` for `spoke-eu`. */
export function zoneInOutputs(zone: string): string {
  return zone.replace(/(^|-)(.)/g, (_, _dash, letter: string) => letter.toUpperCase());
}

/** The output of the control stack that has the role of the zone's workers, which the roles of its clusters trust. */
export function roleOutput(zone: string): string {
  return zone === homeZone ? "ApplyRole" : `Zone${zoneInOutputs(zone)}Role`;
}

/** In place of the zone that reads Sources, where an installation has no networks: no zone has this name. */
export const noNetworks = "-";

/** @returns undefined where there are no networks. */
export function networkZone(variable: string): string | undefined {
  return variable === noNetworks ? undefined : variable;
}
