import { type Cluster, crdResource } from "#local/cluster/cluster.ts";
import { type ControllerSettings, controllerContext } from "#local/cluster/controllers/controller-context.ts";
import { watchCrds } from "#local/cluster/controllers/crd-controller.ts";

/** Starts what runs beside the API server. CustomResourceDefinitions are part of the server and served in any case. */
export function startControllers(cluster: Cluster, settings: ControllerSettings): void {
  const context = controllerContext(cluster, settings);
  const crds = watchCrds(context);
  cluster.store.onChange(crds);
  for (const object of cluster.store.list(crdResource)) {
    crds({ revision: cluster.store.revision, type: "MODIFIED", resource: crdResource, object });
  }
}
