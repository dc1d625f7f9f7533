/** The names of clusters that each zone serves, by the field `clusterNames` of the setting `zones`. */
import { namedTexts } from "#shared/base/named-texts.ts";
import { fitsClusterPattern } from "#shared/fleet/kinds/cluster-pattern.ts";

/** Patterns by zone. A zone that is absent serves every name. */
export type ServedNames = ReadonlyMap<string, readonly string[]>;

/** @param text - `spoke=eu-*+fra-1,other=us-*`, as the stacks write it into environments; absent for none. */
export function parseServedNames(text: string | undefined): ServedNames {
  return new Map([...namedTexts(text)].map(([zone, patterns]) => [zone, patterns.split("+")]));
}

export function servesName(served: ServedNames, zone: string, cluster: string): boolean {
  return served.get(zone)?.some((pattern) => fitsClusterPattern(cluster, pattern)) ?? true;
}

/** The problem and the remedy, behind the name of the zone. */
export function notServedText(served: ServedNames, zone: string, cluster: string): string {
  const patterns = served.get(zone)?.join(", ");
  return `serves clusters named ${patterns}, and not ${cluster}; name another zone, or an operator adds the name to the field clusterNames of zone ${zone} in the setting zones and deploys`;
}
