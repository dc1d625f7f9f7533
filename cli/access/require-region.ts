import { RegionInfo } from "aws-cdk-lib/region-info";
import { usageFailure } from "#cli/session/failure.ts";
import { didYouMean } from "#shared/base/nearest-name.ts";

/**
 * Refuses an unknown region. Nothing answers at such a region's address, which looks like a network problem.
 * @param what - the flag or text that named it, for an error. @throws CliFailure
 */
export function requireRegion(region: string, what: string): void {
  const known = RegionInfo.regions.map(({ name }) => name);
  if (known.includes(region)) return;
  throw usageFailure(
    `${what}: this version knows no AWS region ${region}${didYouMean(region, known)}`,
    "correct it; for a newer region, write the Cluster documents yourself: `starling explain cluster`",
  );
}
