import { RegionInfo } from "aws-cdk-lib/region-info";
import { usageFailure } from "#cli/session/failure.ts";
import { didYouMean } from "#shared/base/nearest-name.ts";

/**
 * Nothing answers at the address of a region that is none, which looks like a network that is down.
 * @param what - where it was said, for an error. @throws CliFailure
 */
export function requireRegion(region: string, what: string): void {
  const known = RegionInfo.regions.map(({ name }) => name);
  if (known.includes(region)) return;
  throw usageFailure(
    `${what}: ${region} is no region of AWS that this version knows${didYouMean(region, known)}`,
    "correct it; clusters of a newer region are registered by their documents: starling explain cluster",
  );
}
