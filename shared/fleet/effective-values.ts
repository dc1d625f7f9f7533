/** The values that count for a cluster, and where each comes from: pure. */
import { compareText } from "#shared/base/text-order.ts";
import { selects } from "#shared/fleet/kinds/cluster-selection.ts";
import type { Value, Values } from "#shared/fleet/kinds/values.ts";
import type { ClusterValuesRow, FleetRow } from "#shared/fleet/rows/object-rows.ts";

/** Who set a value. */
export interface ValueOrigin {
  readonly kind: "ClusterDiscovery" | "ClusterValues" | "Cluster";
  readonly name: string;
}

export interface EffectiveValue {
  readonly value: Value;
  readonly from: ValueOrigin;
}

type Valued = Pick<FleetRow, "name" | "labels" | "values" | "discoveredValues">;
type Layer = Pick<ClusterValuesRow, "name" | "spec">;

/** Sorted by priority, then by name: the values of a later one replace those of an earlier one. */
export function inOrder<Row extends Layer>(rows: readonly Row[]): readonly Row[] {
  return [...rows].sort((a, b) => a.spec.priority - b.spec.priority || compareText(a.name, b.name));
}

/**
 * Discovered values, replaced by those of ClusterValues, replaced by those that people wrote on the Cluster. Each name has
 * one value: a map of a later layer replaces an earlier one, and is not merged with it.
 * @param ordered - see `inOrder`.
 */
export function effectiveValues(cluster: Valued, ordered: readonly Layer[]): Values {
  const selected = ordered.filter(({ spec }) => selects(spec.clusters, cluster));
  if (selected.length === 0) return cluster.values;
  const values: Record<string, Value> = { ...cluster.values };
  const own = ownNames(cluster);
  for (const { spec } of selected) {
    for (const [name, value] of Object.entries(spec.values)) if (!own.has(name)) values[name] = value;
  }
  return values;
}

/** Each value with who set it, by name. @param discovery - the ClusterDiscovery that found the cluster. */
export function valueOrigins(
  cluster: Valued,
  ordered: readonly Layer[],
  discovery: string | undefined,
): Readonly<Record<string, EffectiveValue>> {
  const own = ownNames(cluster);
  const values = effectiveValues(cluster, ordered);
  const setBy = new Map<string, string>();
  for (const { name, spec } of ordered) {
    if (!selects(spec.clusters, cluster)) continue;
    for (const key of Object.keys(spec.values)) setBy.set(key, name);
  }
  const originOf = (name: string): ValueOrigin => {
    if (own.has(name)) return { kind: "Cluster", name: cluster.name };
    const by = setBy.get(name);
    if (by !== undefined) return { kind: "ClusterValues", name: by };
    return { kind: "ClusterDiscovery", name: discovery ?? "" };
  };
  const names = Object.keys(values).sort(compareText);
  return Object.fromEntries(names.map((name) => [name, { value: values[name] as Value, from: originOf(name) }]));
}

/** Those that people wrote on the Cluster. */
function ownNames({ values, discoveredValues = [] }: Valued): ReadonlySet<string> {
  const found = new Set(discoveredValues);
  return new Set(Object.keys(values).filter((name) => !found.has(name)));
}
