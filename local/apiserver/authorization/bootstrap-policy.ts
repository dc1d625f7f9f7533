import { clusterRoleResource, rbacGroup } from "#apiserver/authorization/rbac.ts";
import type { JsonObject } from "#apiserver/json.ts";

/**
 * Verbs, API groups ("core" for the group without a name) and resources; or verbs and URLs. Blanks separate the words.
 */
type Row = readonly [verbs: string, groups: string, resources: string] | readonly [verbs: string, urls: string];

const read = "get list watch";
const write = "create delete deletecollection patch update";

const probes = "/healthz /livez /readyz /version /version/";
const workloads =
  "daemonsets deployments deployments/scale replicasets replicasets/scale statefulsets statefulsets/scale";
const legacyWorkloads =
  "daemonsets deployments deployments/scale replicasets replicasets/scale replicationcontrollers/scale";

/**
 * The ClusterRoles of a new cluster that are for people and programs (bootstrappolicy, 1.36). The roles of Kubernetes'
 * own components are left out.
 */
const roles: Readonly<Record<string, readonly Row[]>> = {
  "cluster-admin": [
    ["*", "*", "*"],
    ["*", "*"],
  ],
  "system:discovery": [["get", `/api /api/* /apis /apis/* /openapi /openapi/* ${probes}`]],
  "system:public-info-viewer": [["get", probes]],
  "system:openshift:public-info-viewer": [["get", "/.well-known /.well-known/*"]],
  "system:service-account-issuer-discovery": [
    ["get", "/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/"],
  ],
  "system:basic-user": [
    ["create", "authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews"],
    ["create", "authentication.k8s.io", "selfsubjectreviews"],
  ],
  "system:monitoring": [
    ["get", "/flagz /healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/* /statusz"],
    ["get", "core", "nodes/metrics"],
  ],
  "system:auth-delegator": [
    ["create", "authentication.k8s.io", "tokenreviews"],
    ["create", "authorization.k8s.io", "subjectaccessreviews"],
  ],
  "system:aggregate-to-admin": [
    ["create", "authorization.k8s.io", "localsubjectaccessreviews"],
    [`${write} ${read}`, rbacGroup, "rolebindings roles"],
  ],
  "system:aggregate-to-edit": [
    [read, "core", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"],
    ["impersonate", "core", "serviceaccounts"],
    [write, "core", "pods pods/attach pods/exec pods/portforward pods/proxy"],
    ["create", "core", "pods/eviction"],
    [
      write,
      "core",
      "configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets serviceaccounts services services/proxy",
    ],
    ["create", "core", "serviceaccounts/token"],
    [write, "core events.k8s.io", "events"],
    [write, "apps", `${workloads} deployments/rollback`],
    [write, "autoscaling", "horizontalpodautoscalers"],
    [write, "batch", "cronjobs jobs"],
    [write, "extensions", `${legacyWorkloads} deployments/rollback ingresses networkpolicies`],
    [write, "policy", "poddisruptionbudgets"],
    [write, "networking.k8s.io", "ingresses networkpolicies"],
    [`${write} ${read}`, "coordination.k8s.io", "leases"],
    [write, "resource.k8s.io", "resourceclaims resourceclaimtemplates"],
  ],
  "system:aggregate-to-view": [
    [
      read,
      "core",
      "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status",
    ],
    [
      read,
      "core",
      "bindings limitranges namespaces/status pods/log pods/status replicationcontrollers/status resourcequotas resourcequotas/status",
    ],
    [read, "core", "namespaces"],
    [read, "core events.k8s.io", "events"],
    [read, "discovery.k8s.io", "endpointslices"],
    [
      read,
      "apps",
      `controllerrevisions ${workloads} daemonsets/status deployments/status replicasets/status statefulsets/status`,
    ],
    [read, "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"],
    [read, "batch", "cronjobs cronjobs/status jobs jobs/status"],
    [
      read,
      "extensions",
      `${legacyWorkloads} daemonsets/status deployments/status ingresses ingresses/status networkpolicies replicasets/status`,
    ],
    [read, "policy", "poddisruptionbudgets poddisruptionbudgets/status"],
    [read, "networking.k8s.io", "ingresses ingresses/status networkpolicies"],
    [read, "resource.k8s.io", "resourceclaims resourceclaims/status resourceclaimtemplates"],
  ],
};

/** A controller fills these roles from the roles that carry their label. */
const aggregated = ["admin", "edit", "view"];

/** Each role on the left is part of the role on its right. For example, the rules of `view` are part of `edit`. */
const partOf: Readonly<Record<string, string>> = {
  edit: "admin",
  view: "edit",
  "system:aggregate-to-admin": "admin",
  "system:aggregate-to-edit": "edit",
  "system:aggregate-to-view": "view",
};

/** The groups that each of these ClusterRoles is bound to in the whole cluster. */
const boundTo: Readonly<Record<string, string>> = {
  "cluster-admin": "system:masters",
  "system:basic-user": "system:authenticated",
  "system:discovery": "system:authenticated",
  "system:monitoring": "system:monitoring",
  "system:openshift:public-info-viewer": "system:authenticated system:unauthenticated",
  "system:public-info-viewer": "system:authenticated system:unauthenticated",
  "system:service-account-issuer-discovery": "system:serviceaccounts",
};

function aggregationLabel(name: string): string {
  return `${rbacGroup}/aggregate-to-${name}`;
}

function metadataOf(name: string): JsonObject {
  const whole = partOf[name];
  return {
    name,
    labels: {
      "kubernetes.io/bootstrapping": "rbac-defaults",
      ...(whole === undefined ? {} : { [aggregationLabel(whole)]: "true" }),
    },
    annotations: { "rbac.authorization.kubernetes.io/autoupdate": "true" },
  };
}

function words(text: string): string[] {
  return text.split(" ");
}

function ruleOf([verbs, second, resources]: Row): JsonObject {
  // Kubernetes sorts its own policy, too.
  if (resources === undefined) return { verbs: words(verbs).sort(), nonResourceURLs: words(second).sort() };
  const apiGroups = words(second).map((group) => (group === "core" ? "" : group));
  return { verbs: words(verbs).sort(), apiGroups, resources: words(resources).sort() };
}

function boundRole(name: string, groups: string): JsonObject {
  const subjects = words(groups).map((group) => ({ kind: "Group", apiGroup: rbacGroup, name: group }));
  return { metadata: metadataOf(name), subjects, roleRef: { apiGroup: rbacGroup, kind: "ClusterRole", name } };
}

/** Built once and shared by all clusters of a process. */
export const bootstrapPolicy: readonly (readonly [resource: string, object: JsonObject])[] = [
  ...Object.entries(roles).map(
    ([name, rows]) => [clusterRoleResource, { metadata: metadataOf(name), rules: rows.map(ruleOf) }] as const,
  ),
  ...aggregated.map((name) => {
    const clusterRoleSelectors = [{ matchLabels: { [aggregationLabel(name)]: "true" } }];
    const role = { metadata: metadataOf(name), aggregationRule: { clusterRoleSelectors }, rules: null };
    return [clusterRoleResource, role] as const;
  }),
  ...Object.entries(boundTo).map(
    ([name, groups]) => [`${rbacGroup}/clusterrolebindings`, boundRole(name, groups)] as const,
  ),
];
