import { compareText } from "#shared/base/text-order.ts";
import type { GroupKind, ObjectId } from "#shared/kube/object-id.ts";

/**
 * The order in which the objects of one Sync are applied. A rank is a barrier: it begins after the server has answered
 * all requests of the rank before it. Only Namespaces and CRDs are waited for.
 */
export const ranks = {
  namespace: 0,
  definition: 1,
  class: 2,
  limits: 3,
  serviceAccount: 4,
  role: 5,
  binding: 6,
  config: 7,
  volume: 8,
  service: 9,
  other: 10,
  workload: 11,
  scalingAndRouting: 12,
  apiService: 13,
  admission: 14,
} as const;

const rankByKind: Readonly<Record<string, number>> = {
  "/Namespace": ranks.namespace,
  "apiextensions.k8s.io/CustomResourceDefinition": ranks.definition,
  "/ResourceQuota": ranks.limits,
  "/LimitRange": ranks.limits,
  "networking.k8s.io/NetworkPolicy": ranks.limits,
  "/ServiceAccount": ranks.serviceAccount,
  "rbac.authorization.k8s.io/ClusterRole": ranks.role,
  "rbac.authorization.k8s.io/Role": ranks.role,
  "rbac.authorization.k8s.io/ClusterRoleBinding": ranks.binding,
  "rbac.authorization.k8s.io/RoleBinding": ranks.binding,
  "/Secret": ranks.config,
  "/ConfigMap": ranks.config,
  "/PersistentVolume": ranks.volume,
  "/PersistentVolumeClaim": ranks.volume,
  "/Service": ranks.service,
  "/Endpoints": ranks.service,
  "discovery.k8s.io/EndpointSlice": ranks.service,
  "apps/Deployment": ranks.workload,
  "apps/StatefulSet": ranks.workload,
  "apps/DaemonSet": ranks.workload,
  "apps/ReplicaSet": ranks.workload,
  "/ReplicationController": ranks.workload,
  "/Pod": ranks.workload,
  "batch/Job": ranks.workload,
  "batch/CronJob": ranks.workload,
  "autoscaling/HorizontalPodAutoscaler": ranks.scalingAndRouting,
  "policy/PodDisruptionBudget": ranks.scalingAndRouting,
  "networking.k8s.io/Ingress": ranks.scalingAndRouting,
  "gateway.networking.k8s.io/HTTPRoute": ranks.scalingAndRouting,
  "apiregistration.k8s.io/APIService": ranks.apiService,
  "admissionregistration.k8s.io/MutatingWebhookConfiguration": ranks.admission,
  "admissionregistration.k8s.io/ValidatingWebhookConfiguration": ranks.admission,
  "admissionregistration.k8s.io/MutatingAdmissionPolicy": ranks.admission,
  "admissionregistration.k8s.io/MutatingAdmissionPolicyBinding": ranks.admission,
  "admissionregistration.k8s.io/ValidatingAdmissionPolicy": ranks.admission,
  "admissionregistration.k8s.io/ValidatingAdmissionPolicyBinding": ranks.admission,
};

/** The rank of a kind. Kinds that end in `Class` come before the objects that refer to them, in any group. */
export function rankOf({ group, kind }: GroupKind): number {
  const rank = rankByKind[`${group}/${kind}`];
  if (rank !== undefined) return rank;
  return kind.endsWith("Class") ? ranks.class : ranks.other;
}

/** A total order: rank, group, kind, namespace, name. */
export function compareForApply(a: ObjectId, b: ObjectId): number {
  return rankOf(a) - rankOf(b) || compareId(a, b);
}

function compareId(a: ObjectId, b: ObjectId): number {
  return (
    compareText(a.group, b.group) ||
    compareText(a.kind, b.kind) ||
    compareText(a.namespace, b.namespace) ||
    compareText(a.name, b.name)
  );
}

/** Splits the items into ranks, lowest first, each sorted. */
export function inRanks<T>(items: readonly T[], idOf: (item: T) => ObjectId): readonly (readonly T[])[] {
  const groups = new Map<number, T[]>();
  for (const item of items) {
    const rank = rankOf(idOf(item));
    const group = groups.get(rank);
    if (group) group.push(item);
    else groups.set(rank, [item]);
  }
  const sorted = [...groups.entries()].sort(([a], [b]) => a - b);
  return sorted.map(([, group]) => group.sort((a, b) => compareId(idOf(a), idOf(b))));
}

/**
 * The rank of a kind in the order of deletion. It is the reverse of the order of applying, with one exception: kinds
 * that Starling does not know come first, so that the controllers that finalise custom resources still exist (a rule of
 * kapp).
 */
export function deletionRankOf(kind: GroupKind): number {
  const rank = rankOf(kind);
  return rank === ranks.other ? 0 : 1 + ranks.admission - rank;
}
