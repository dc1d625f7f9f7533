let chosen: number | undefined;

/**
 * The same seed in every run, so that a failure comes from the commit's own change. STARLING_E2E_SEED sets another one.
 */
export function steadySeed(seed: number): number {
  const played = Number(process.env.STARLING_E2E_SEED ?? seed);
  console.log(`faults: STARLING_E2E_SEED=${played}`);
  return played;
}

/** The seed of the faults in end-to-end tests. It is printed at its first use. */
export function runSeed(): number {
  chosen ??= steadySeed(1);
  return chosen;
}
