/** Zones for templates, as the setting has them on the command line: every second one with subnets that exist. */
export function zonesOf(count: number): string {
  const id = (kind: string, index: number) => `${kind}-${String(index).padStart(17, "0")}`;
  const zones = Array.from({ length: count }, (_, index) => ({
    name: `z${index + 1}`,
    ...(index % 2 === 0
      ? { vpc: {} }
      : { subnets: [id("subnet", 2 * index), id("subnet", 2 * index + 1)], securityGroups: [id("sg", index)] }),
  }));
  return JSON.stringify(zones);
}

/** The installation's place, for zones in other accounts and regions. */
export const homeOfZones = {
  account: "111122223333",
  region: "eu-central-1",
  table: "starling-state-TableCD117FA1-1A2B3C4D5E6F",
  bucket: "starling-state-blobs83650adb-1a2b3c4d5e6f",
} as const;

/** Zones of which the first is here, the second in another account and region without a network, the third in another region, and so on. */
export function mixedZonesOf(count: number): Readonly<Record<"zones" | "home", string>> {
  const zones = (JSON.parse(zonesOf(count)) as readonly { readonly name: string }[]).map((zone, index) => {
    const clusterNames = [`${zone.name}-*`, `fra-${index + 1}`];
    if (index % 3 === 1) return { name: zone.name, account: "444455556666", region: "us-east-1", clusterNames };
    if (index % 3 === 2) return { ...zone, region: "eu-west-1", clusterNames };
    return { ...zone, clusterNames };
  });
  return { zones: JSON.stringify(zones), home: JSON.stringify(homeOfZones) };
}
