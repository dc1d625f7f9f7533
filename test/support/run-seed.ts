const most = 1_000_000;
let chosen: number | undefined;

/** A seed that is the same in every run, so that a commit is judged by what it changed; STARLING_E2E_SEED plays another. */
export function steadySeed(seed: number): number {
  const played = Number(process.env.STARLING_E2E_SEED ?? seed);
  console.log(`faults: STARLING_E2E_SEED=${played}`);
  return played;
}

/** The seed of this run's faults, printed when it is first asked for; STARLING_E2E_SEED repeats it. */
export function runSeed(): number {
  chosen ??= steadySeed(Date.now() % most);
  return chosen;
}
