/** The zones of a benchmark: what costs the same in three of them as in `home` alone. */

import type { MachineOptions } from "#local/machine/machine.ts";

export interface BenchZones {
  /** An option of the machine. */
  readonly zones: Pick<MachineOptions, "zones">;
  /** The zone of a cluster by its number. */
  readonly zoneAt: (index: number) => string | undefined;
}

export const onlyHome: BenchZones = { zones: {}, zoneAt: () => undefined };

const besides = ["fixed", "spoke"] as const;
const names = [undefined, ...besides] as const;

/** `home` and two others. Each reaches every third cluster. */
export const threeZones: BenchZones = {
  zones: { zones: JSON.stringify(besides.map((name) => ({ name, vpc: {} }))) },
  zoneAt: (index) => names[index % names.length],
};
