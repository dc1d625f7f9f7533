import { clusterRoleResource } from "#apiserver/authorization/rbac.ts";
import { type Cluster, crdResource } from "#apiserver/cluster.ts";
import { type Change, keyOf } from "#apiserver/cluster-store.ts";
import { watchApiServices } from "#apiserver/controllers/api-service-controller.ts";
import { aggregatedRoles, aggregateRules } from "#apiserver/controllers/cluster-role-controller.ts";
import {
  type ControllerContext,
  type ControllerSettings,
  controllerContext,
  controllerOf,
} from "#apiserver/controllers/controller-context.ts";
import { watchCrds } from "#apiserver/controllers/crd-controller.ts";
import { daemonSetResource, reconcileDaemonSet } from "#apiserver/controllers/daemon-set-controller.ts";
import { deploymentResource, reconcileDeployment } from "#apiserver/controllers/deployment-controller.ts";
import { balanceLoad, reconcileService, serviceResource } from "#apiserver/controllers/endpoints-controller.ts";
import { collectGarbage } from "#apiserver/controllers/garbage-collector.ts";
import { jobResource, reconcileJob } from "#apiserver/controllers/job-controller.ts";
import { namespaceResource, reconcileNamespace } from "#apiserver/controllers/namespace-controller.ts";
import { podResource, runPods } from "#apiserver/controllers/pod-controller.ts";
import { reconcileReplicaSet, replicaSetResource } from "#apiserver/controllers/replica-set-controller.ts";
import { reconcileStatefulSet, statefulSetResource } from "#apiserver/controllers/stateful-set-controller.ts";
import {
  bindClaim,
  budgetResource,
  claimResource,
  claims,
  countBudget,
  releaseStorage,
  volumeResource,
} from "#apiserver/controllers/storage-controller.ts";
import { enqueue } from "#apiserver/controllers/workload.ts";
import type { JsonObject } from "#apiserver/json.ts";
import { stringAt } from "#apiserver/object-fields.ts";
import { matchesLabels } from "#apiserver/operations/table.ts";

type Reconcile = (context: ControllerContext, object: JsonObject) => void;

/** The reconciler of each resource. It runs when an object changes, and when an object that it controls changes. */
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

/** The work on each resource that runs a delay after an object was written. */
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

/**
 * Starts the controllers beside the API server. CustomResourceDefinitions and APIServices are part of the server, so
 * their controllers always run.
 */
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
  // Restored objects count as new.
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

/** Services and PodDisruptionBudgets select Pods by labels, so a changed Pod wakes those that may select it. */
function wakeSelectors(context: ControllerContext, pod: JsonObject, namespace: string): void {
  const { store } = context.cluster;
  for (const service of store.list(serviceResource, namespace)) {
    const selector = (service.spec as JsonObject | undefined)?.selector;
    if (matchesLabels(pod, selector)) wake(context, serviceResource, keyOf(service));
  }
  for (const budget of store.list(budgetResource, namespace)) wake(context, budgetResource, keyOf(budget));
}
