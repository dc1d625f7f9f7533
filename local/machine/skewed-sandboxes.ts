import { createRandom } from "#local/base/random.ts";
import type { MachineOptions } from "#local/machine/machine.ts";
import type { SleepingClock } from "#shared/base/clock.ts";

type Sandboxes = NonNullable<MachineOptions["sandboxes"]>;

export interface SkewOptions {
  readonly clock: SleepingClock;
  readonly seed: number;
  /** The largest error, ahead or behind, in milliseconds of the clock. */
  readonly mostOffMs: number;
  /** Wraps the sandboxes. The default is one sandbox per function. */
  readonly sandboxes?: Sandboxes;
}

/** Sandboxes whose clocks disagree. The error of each clock comes from the seed and stays for its sandbox's life. */
export function skewedSandboxes({ clock, seed, mostOffMs, sandboxes }: SkewOptions): Sandboxes {
  const random = createRandom(seed);
  const inner: Sandboxes = sandboxes ?? ((_name, wire) => wire());
  return (name, wire) =>
    inner(name, (own) => {
      const offMs = random.integer(-mostOffMs, mostOffMs);
      return wire({ ...own, clock: { ...clock, now: () => new Date(clock.now().getTime() + offMs) } });
    });
}
