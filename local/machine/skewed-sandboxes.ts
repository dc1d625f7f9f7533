import { createRandom } from "#local/base/random.ts";
import type { MachineOptions } from "#local/machine/machine.ts";
import type { SleepingClock } from "#shared/base/clock.ts";

type Sandboxes = NonNullable<MachineOptions["sandboxes"]>;

export interface SkewOptions {
  readonly clock: SleepingClock;
  readonly seed: number;
  /** Of the clock's own milliseconds, ahead or behind. */
  readonly mostOffMs: number;
  /** What is done with the sandboxes otherwise; one for each function by default. */
  readonly sandboxes?: Sandboxes;
}

/** Sandboxes whose clocks disagree: each is off by so much, seeded, for as long as it lives. */
export function skewedSandboxes({ clock, seed, mostOffMs, sandboxes }: SkewOptions): Sandboxes {
  const random = createRandom(seed);
  const inner: Sandboxes = sandboxes ?? ((_name, wire) => wire());
  return (name, wire) =>
    inner(name, (own) => {
      const offMs = random.integer(-mostOffMs, mostOffMs);
      return wire({ ...own, clock: { ...clock, now: () => new Date(clock.now().getTime() + offMs) } });
    });
}
