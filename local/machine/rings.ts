/** The rings of every fleet on this machine, from the most careful to the largest. */
export const rings = ["canary", "early", "broad"] as const;

interface FleetCluster {
  readonly name: string;
  readonly labels: { readonly ring: (typeof rings)[number] };
}

/** The clusters of a fleet of this size, named `<ring>-<n>`. They need not exist yet. */
export function fleetClusters(count: number): readonly FleetCluster[] {
  const numbers = new Map<string, number>();
  return ringOfEach(count).map((ring) => {
    const number = (numbers.get(ring) ?? 0) + 1;
    numbers.set(ring, number);
    return { name: `${ring}-${String(number).padStart(String(count).length, "0")}`, labels: { ring } };
  });
}

function ringOfEach(count: number): readonly (typeof rings)[number][] {
  const canaries = Math.max(1, Math.round(count / 6));
  const early = count < 3 ? 0 : Math.max(1, Math.round(count / 3));
  return Array.from({ length: count }, (_, index) =>
    index < canaries ? "canary" : index < canaries + early ? "early" : "broad",
  );
}
