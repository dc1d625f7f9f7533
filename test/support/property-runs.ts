/** The same for every commit, so that it is judged by what it changed; `npm run nightly -- properties` draws one. */
export const propertySeeds: readonly number[] = (process.env.STARLING_PROPERTY_SEED ?? "1,2").split(",").map(Number);

/** Runs of each seed. */
export function propertyRuns(usual: number): number {
  return Number(process.env.STARLING_PROPERTY_RUNS ?? usual);
}
