import { registered } from "#functions/api/request/registered.ts";
import { readClusterValues } from "#shared/adapters/read-cluster-values.ts";
import { canonicalJson } from "#shared/base/json.ts";
import { inOrder } from "#shared/fleet/effective-values.ts";
import { selects } from "#shared/fleet/kinds/cluster-selection.ts";
import type { ClusterValuesSpec } from "#shared/fleet/kinds/cluster-values.ts";
import type { Document } from "#shared/fleet/kinds/document.ts";
import { clusterLabels } from "#shared/fleet/rows/cluster-entry.ts";
import type { Table } from "#shared/ports.ts";

interface Layer {
  readonly name: string;
  readonly spec: ClusterValuesSpec;
}

/**
 * Two ClusterValues of one priority that set a name to different values for a common cluster. Their names decide then,
 * which nobody intends.
 */
export async function valueWarnings(
  table: Table,
  documents: readonly Document[],
): Promise<readonly (readonly string[])[]> {
  const own = documents.map((document) => (document.kind === "ClusterValues" ? layerOf(document) : undefined));
  const layers = own.filter((layer) => layer !== undefined);
  if (layers.length === 0) return documents.map(() => []);
  const names = new Set(layers.map(({ name }) => name));
  const all = [...layers, ...(await readClusterValues(table)).filter(({ name }) => !names.has(name))];
  const rivals = own.map((layer) =>
    layer === undefined ? [] : all.filter((other) => differing(layer, other).length > 0),
  );
  if (rivals.every(({ length }) => length === 0)) return documents.map(() => []);
  const written = documents.flatMap((document) =>
    document.kind === "Cluster"
      ? [
          {
            name: document.metadata.name,
            labels: clusterLabels({ labels: document.metadata.labels ?? {}, spec: document.spec }),
          },
        ]
      : [],
  );
  // Clusters that are written in the same request count with their future labels.
  const writtenNames = new Set(written.map(({ name }) => name));
  const fleet = [...written, ...(await registered(table)).filter(({ name }) => !writtenNames.has(name))];
  return own.map((layer, index) =>
    (rivals[index] ?? []).flatMap((other) => {
      const cluster = fleet.find(
        (each) => layer !== undefined && [layer, other].every(({ spec }) => selects(spec.clusters, each)),
      );
      return layer === undefined || cluster === undefined ? [] : [warning(layer, other, cluster.name)];
    }),
  );
}

function layerOf({ metadata: { name }, spec }: Extract<Document, { kind: "ClusterValues" }>): Layer {
  return { name, spec };
}

/** The names that both set, at one priority and to different values. */
function differing(layer: Layer, other: Layer): readonly string[] {
  if (layer.name === other.name || layer.spec.priority !== other.spec.priority) return [];
  const [one, two] = [layer.spec.values, other.spec.values];
  return Object.keys(one).filter(
    (name) => Object.hasOwn(two, name) && canonicalJson(one[name]) !== canonicalJson(two[name]),
  );
}

function warning(layer: Layer, other: Layer, cluster: string): string {
  const names = differing(layer, other).join(", ");
  const last = inOrder([layer, other]).at(-1)?.name;
  return `ClusterValues ${other.name} has the same priority (${layer.spec.priority}), and sets ${names} otherwise for clusters of both, such as ${cluster}: ${last} counts there, for its name is later; give one of them another priority`;
}
