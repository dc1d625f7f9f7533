import { clusterNameOf } from "#local/clusters/kubeconfig-file.ts";
import type { ShapeCluster } from "#local/git/folder-shape.ts";
import { fleetClusters } from "#local/machine/rings.ts";
import type { ClusterChoice } from "#local/serve/state-folder.ts";

export const envtestName = "envtest";

/** The clusters that a machine registers itself. It does not have to run. */
export function expectedClusters(choice: ClusterChoice): readonly ShapeCluster[] {
  switch (choice.kind) {
    case "embedded":
      return fleetClusters(choice.count);
    case "envtest":
      return [{ name: envtestName, labels: {} }];
    case "kubeconfig":
      return [{ name: clusterNameOf(choice.context), labels: {} }];
  }
}
