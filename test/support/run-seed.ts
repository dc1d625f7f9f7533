let chosen: number | undefined;

/** A seed that is the same in every run, so that a commit is judged by what it changed; STARLING_E2E_SEED plays another. */
export function steadySeed(seed: number): number {
  const played = Number(process.env.STARLING_E2E_SEED ?? seed);
  console.log(`faults: STARLING_E2E_SEED=${played}`);
  return played;
}

/** The seed of the end-to-end tests' faults, printed when it is first asked for. */
export function runSeed(): number {
  chosen ??= steadySeed(1);
  return chosen;
}
