/**
 * The same seeds for every commit, so that a failure comes from the commit's own change. `npm run nightly --
 * properties` uses a random one.
 */
export const propertySeeds: readonly number[] = (process.env.STARLING_PROPERTY_SEED ?? "1,2").split(",").map(Number);

/** The number of runs per seed. */
export function propertyRuns(usual: number): number {
  return Number(process.env.STARLING_PROPERTY_RUNS ?? usual);
}
