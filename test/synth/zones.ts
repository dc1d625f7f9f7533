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
