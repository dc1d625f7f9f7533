import type { ClusterSpec } from "#shared/fleet/kinds/cluster.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { ClusterRow } from "#shared/fleet/rows/object-rows.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";

const endpointSpec: ClusterSpec = { endpoint: { server: "https://c1.example.com", token: { secret: "c1" } } };

/** The row of Cluster `c1` after its registration and before its first observation. */
export function clusterRow(spec: ClusterSpec = endpointSpec): ClusterRow {
  return {
    ...keys.cluster("c1"),
    type: "Cluster",
    schema: rowSchema,
    version: 1,
    uid: "uid-c1",
    name: "c1",
    labels: {},
    annotations: {},
    generation: 1,
    createdAt: "2026-11-20T08:00:00.000Z",
    spec,
    operations: {},
    status: { conditions: [] },
  };
}
