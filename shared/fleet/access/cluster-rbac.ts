/**
 * The rights of Starling's group in a cluster, in one place: the construct, the template, the module, `starling cluster
 * add` and `starling cluster check` use it.
 */
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import { parentNamespace } from "#shared/kube/parent-object.ts";

/** A rule of RBAC, as a ClusterRole holds it. */
export interface AccessRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

export interface ClusterRbac {
  /** The Kubernetes group of the access entry. */
  readonly group: string;
  /** Rules for the fleet's manifests; `fleetRules` by default. */
  readonly fleetRules?: readonly AccessRule[];
}

/** Groups of access entries cannot begin with `system:`. */
export const accessGroup = /^[a-z0-9.-]+$/;
export const accessGroupText = "a name of a-z, 0-9, . and - such as starling";
export const defaultGroup = "starling";

const rbac = "rbac.authorization.k8s.io";

/** Server-side apply creates and patches; a prune deletes an object that it has read. */
const manage = ["get", "list", "create", "patch", "delete"] as const;

/** Rights that Starling itself needs in every cluster, whatever the fleet applies there. */
export const ownRules: readonly AccessRule[] = [
  // The identity of the cluster, and its memory of what was applied.
  { apiGroups: [""], resources: ["namespaces"], resourceNames: ["kube-system", parentNamespace], verbs: ["get"] },
  // Members of a Sync are found by their label, and a Namespace is pruned when it has no object of any kind.
  { apiGroups: ["*"], resources: ["*"], verbs: ["list"] },
  // A changed definition of a kind may have changed its objects.
  { apiGroups: ["apiextensions.k8s.io"], resources: ["customresourcedefinitions"], verbs: ["get"] },
];

/** Rights in Starling's own namespace: one ConfigMap for each Sync, with the fence. */
export const namespaceRules: readonly AccessRule[] = [
  { apiGroups: [""], resources: ["configmaps"], verbs: ["get", "create", "update", "delete"] },
];

/**
 * Rights for the manifests of most fleets. They include no object of the cluster itself (nodes, volumes, webhooks,
 * definitions, ClusterRoles), and no verb beyond an apply and a prune. They never include `escalate`, `bind` and
 * `impersonate`, so that a Role in a manifest cannot grant more than Starling has.
 */
export const fleetRules: readonly AccessRule[] = [
  {
    apiGroups: [""],
    resources: [
      "configmaps",
      "limitranges",
      "namespaces",
      "persistentvolumeclaims",
      "resourcequotas",
      "secrets",
      "serviceaccounts",
      "services",
    ],
    verbs: manage,
  },
  { apiGroups: ["apps"], resources: ["daemonsets", "deployments", "statefulsets"], verbs: manage },
  { apiGroups: ["autoscaling"], resources: ["horizontalpodautoscalers"], verbs: manage },
  { apiGroups: ["batch"], resources: ["cronjobs", "jobs"], verbs: manage },
  { apiGroups: ["networking.k8s.io"], resources: ["ingresses", "networkpolicies"], verbs: manage },
  { apiGroups: ["policy"], resources: ["poddisruptionbudgets"], verbs: manage },
  { apiGroups: [rbac], resources: ["rolebindings", "roles"], verbs: manage },
];

const labels = { "app.kubernetes.io/managed-by": "starling" };

/**
 * The objects of the access, in the order in which they are applied. Their names contain the group, so that two
 * installations may share a cluster.
 */
export function rbacManifests({ group, fleetRules: fleet = fleetRules }: ClusterRbac): readonly ManifestObject[] {
  const subjects = [{ apiGroup: rbac, kind: "Group", name: group }];
  const bound = (kind: "ClusterRole" | "Role", name: string) => ({ apiGroup: rbac, kind, name });
  const [version, fleetName] = [`${rbac}/v1`, `${group}-fleet`];
  return [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: parentNamespace, labels } },
    { apiVersion: version, kind: "ClusterRole", metadata: { name: group, labels }, rules: plain(ownRules) },
    {
      apiVersion: version,
      kind: "ClusterRoleBinding",
      metadata: { name: group, labels },
      roleRef: bound("ClusterRole", group),
      subjects,
    },
    {
      apiVersion: version,
      kind: "Role",
      metadata: { name: group, namespace: parentNamespace, labels },
      rules: plain(namespaceRules),
    },
    {
      apiVersion: version,
      kind: "RoleBinding",
      metadata: { name: group, namespace: parentNamespace, labels },
      roleRef: bound("Role", group),
      subjects,
    },
    { apiVersion: version, kind: "ClusterRole", metadata: { name: fleetName, labels }, rules: plain(fleet) },
    {
      apiVersion: version,
      kind: "ClusterRoleBinding",
      metadata: { name: fleetName, labels },
      roleRef: bound("ClusterRole", fleetName),
      subjects,
    },
  ];
}

function plain(rules: readonly AccessRule[]) {
  return rules.map(({ apiGroups, resources, resourceNames, verbs }) => ({
    apiGroups: [...apiGroups],
    resources: [...resources],
    ...(resourceNames === undefined ? {} : { resourceNames: [...resourceNames] }),
    verbs: [...verbs],
  }));
}
