import { clusterRoleResource } from "#local/cluster/authorization/rbac.ts";
import { type Cluster, crdResource } from "#local/cluster/cluster.ts";
import { type Change, keyOf } from "#local/cluster/cluster-store.ts";
import { watchApiServices } from "#local/cluster/controllers/api-service-controller.ts";
import { aggregatedRoles, aggregateRules } from "#local/cluster/controllers/cluster-role-controller.ts";
import {
  type ControllerContext,
  type ControllerSettings,
  controllerContext,
  controllerOf,
} from "#local/cluster/controllers/controller-context.ts";
import { watchCrds } from "#local/cluster/controllers/crd-controller.ts";
import { daemonSetResource, reconcileDaemonSet } from "#local/cluster/controllers/daemon-set-controller.ts";
import { deploymentResource, reconcileDeployment } from "#local/cluster/controllers/deployment-controller.ts";
import { balanceLoad, reconcileService, serviceResource } from "#local/cluster/controllers/endpoints-controller.ts";
import { collectGarbage } from "#local/cluster/controllers/garbage-collector.ts";
import { jobResource, reconcileJob } from "#local/cluster/controllers/job-controller.ts";
import { namespaceResource, reconcileNamespace } from "#local/cluster/controllers/namespace-controller.ts";
import { podResource, runPods } from "#local/cluster/controllers/pod-controller.ts";
import { reconcileReplicaSet, replicaSetResource } from "#local/cluster/controllers/replica-set-controller.ts";
import { reconcileStatefulSet, statefulSetResource } from "#local/cluster/controllers/stateful-set-controller.ts";
import {
  bindClaim,
  budgetResource,
  claimResource,
  claims,
  countBudget,
  releaseStorage,
  volumeResource,
} from "#local/cluster/controllers/storage-controller.ts";
import { enqueue } from "#local/cluster/controllers/workload.ts";
import { matchesLabels } from "#local/cluster/operations/table.ts";
import type { JsonObject } from "#shared/base/json.ts";
import { stringAt } from "#shared/kube/kube-object.ts";

type Reconcile = (context: ControllerContext, object: JsonObject) => void;

/** What is reconciled when it changes, and when something it controls does. */
const reconcilers: Readonly<Record<string, Reconcile>> = {
  [deploymentResource]: reconcileDeployment,
  [replicaSetResource]: reconcileReplicaSet,
  [statefulSetResource]: reconcileStatefulSet,
  [daemonSetResource]: reconcileDaemonSet,
  [jobResource]: reconcileJob,
  [serviceResource]: reconcileService,
  [namespaceResource]: reconcileNamespace,
  [clusterRoleResource]: aggregateRules,
  [budgetResource]: countBudget,
  [claimResource]: releaseStorage,
  [volumeResource]: releaseStorage,
};

/** What happens to an object a while after it came. */
const delayed: Readonly<Record<string, Reconcile>> = {
  [claimResource]: bindClaim,
  [serviceResource]: balanceLoad,
};

const ownerResources: Readonly<Record<string, string>> = {
  Deployment: deploymentResource,
  ReplicaSet: replicaSetResource,
  StatefulSet: statefulSetResource,
  DaemonSet: daemonSetResource,
  Job: jobResource,
};

/** Starts what runs beside the API server. CustomResourceDefinitions and APIServices are part of the server and looked after in any case. */
export function startControllers(cluster: Cluster, settings: ControllerSettings): void {
  const context = controllerContext(cluster, settings);
  const followers = [watchCrds(context), watchApiServices(context)];
  if (cluster.options.controllers === "on") {
    followers.push(collectGarbage(context), runPods(context), (change) => reconcileChanged(context, change));
  }
  cluster.store.onChange((change) => {
    context.owners.follow(change);
    for (const follow of followers) follow(change);
  });
  // Objects that were there before: as if they had just come.
  for (const resource of [crdResource, ...cluster.store.resources().filter((each) => each !== crdResource)]) {
    for (const object of cluster.store.list(resource)) {
      for (const follow of followers) follow({ revision: cluster.store.revision, type: "ADDED", resource, object });
    }
  }
}

function reconcileChanged(context: ControllerContext, { resource, object, type }: Change): void {
  const key = keyOf(object);
  const reconcile = reconcilers[resource];
  if (reconcile !== undefined && type !== "DELETED")
    enqueue(context, { resource, key }, (live) => reconcile(context, live));
  const later = delayed[resource];
  if (later !== undefined && type !== "DELETED") {
    const atMs = context.cluster.options.clock() + context.readyAfterMs;
    enqueue(context, { resource, key, atMs, topic: "later" }, (live) => later(context, live));
  }
  const owner = controllerOf(object);
  const ownerResource = ownerResources[String(owner?.kind)];
  const namespace = stringAt(object, "metadata", "namespace") ?? "";
  if (owner !== undefined && ownerResource !== undefined)
    wake(context, ownerResource, `${namespace}/${String(owner.name)}`);
  if (resource === podResource) {
    wakeSelectors(context, object, namespace);
    for (const claim of type === "DELETED" ? claims(object) : []) wake(context, claimResource, `${namespace}/${claim}`);
  }
  if (resource === clusterRoleResource) for (const each of aggregatedRoles(context)) wake(context, resource, each);
  if (context.cluster.isTerminating(namespace)) wake(context, namespaceResource, `/${namespace}`);
}

function wake(context: ControllerContext, resource: string, key: string): void {
  const reconcile = reconcilers[resource];
  if (reconcile !== undefined) enqueue(context, { resource, key }, (live) => reconcile(context, live));
}

/** Services and budgets select Pods by labels. */
function wakeSelectors(context: ControllerContext, pod: JsonObject, namespace: string): void {
  const { store } = context.cluster;
  for (const service of store.list(serviceResource, namespace)) {
    const selector = (service.spec as JsonObject | undefined)?.selector;
    if (matchesLabels(pod, selector)) wake(context, serviceResource, keyOf(service));
  }
  for (const budget of store.list(budgetResource, namespace)) wake(context, budgetResource, keyOf(budget));
}
