const most = 1_000_000;
let chosen: number | undefined;

/** The seed of this run's faults, printed when it is first asked for; STARLING_E2E_SEED repeats it. */
export function runSeed(): number {
  if (chosen === undefined) {
    chosen = Number(process.env.STARLING_E2E_SEED ?? Date.now() % most);
    console.log(`faults: STARLING_E2E_SEED=${chosen}`);
  }
  return chosen;
}
