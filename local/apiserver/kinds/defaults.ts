import { isJsonObject, type Json, type JsonObject } from "#apiserver/json.ts";
import { defaultAutoscaler, defaultScaling } from "#apiserver/kinds/autoscaler-defaults.ts";

/** A struct that is being built. Defaults are written into it. */
export type Draft = Record<string, Json>;

const httpScheme = { path: "/", scheme: "HTTP" };
const fileMode = { defaultMode: 420 };

/** Defaults that depend on no other field, by type (pkg/apis/.../defaults.go of Kubernetes 1.36). */
const constants: Readonly<Record<string, JsonObject>> = {
  "core.v1.Container": { terminationMessagePath: "/dev/termination-log", terminationMessagePolicy: "File" },
  "core.v1.EphemeralContainerCommon": {
    terminationMessagePath: "/dev/termination-log",
    terminationMessagePolicy: "File",
  },
  "core.v1.EphemeralContainer": { terminationMessagePath: "/dev/termination-log", terminationMessagePolicy: "File" },
  "core.v1.ContainerPort": { protocol: "TCP" },
  "core.v1.Probe": { timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 },
  "core.v1.HTTPGetAction": httpScheme,
  "core.v1.GRPCAction": { service: "" },
  "core.v1.PodSpec": {
    restartPolicy: "Always",
    terminationGracePeriodSeconds: 30,
    dnsPolicy: "ClusterFirst",
    securityContext: {},
    schedulerName: "default-scheduler",
  },
  "core.v1.ObjectFieldSelector": { apiVersion: "v1" },
  "core.v1.ConfigMapVolumeSource": fileMode,
  "core.v1.SecretVolumeSource": fileMode,
  "core.v1.DownwardAPIVolumeSource": fileMode,
  "core.v1.ProjectedVolumeSource": fileMode,
  "core.v1.ServiceAccountTokenProjection": { expirationSeconds: 3600 },
  "core.v1.HostPathVolumeSource": { type: "" },
  "core.v1.ServicePort": { protocol: "TCP" },
  "core.v1.EndpointPort": { protocol: "TCP" },
  "discovery.v1.EndpointPort": { name: "", protocol: "TCP" },
  "core.v1.Secret": { type: "Opaque" },
  "core.v1.PersistentVolumeClaimSpec": { volumeMode: "Filesystem" },
  "core.v1.PersistentVolumeClaimStatus": { phase: "Pending" },
  "core.v1.PersistentVolumeSpec": { persistentVolumeReclaimPolicy: "Retain", volumeMode: "Filesystem" },
  "core.v1.PersistentVolumeStatus": { phase: "Pending" },
  "core.v1.PodStatus": { phase: "Pending" },
  "apps.v1.DeploymentSpec": { replicas: 1, revisionHistoryLimit: 10, progressDeadlineSeconds: 600 },
  "apps.v1.DeploymentStrategy": { type: "RollingUpdate" },
  "apps.v1.ReplicaSetSpec": { replicas: 1 },
  "core.v1.ReplicationControllerSpec": { replicas: 1 },
  "apps.v1.StatefulSetSpec": {
    replicas: 1,
    revisionHistoryLimit: 10,
    podManagementPolicy: "OrderedReady",
    persistentVolumeClaimRetentionPolicy: { whenDeleted: "Retain", whenScaled: "Retain" },
  },
  "apps.v1.DaemonSetSpec": { revisionHistoryLimit: 10 },
  "apps.v1.DaemonSetUpdateStrategy": { type: "RollingUpdate" },
  "batch.v1.CronJobSpec": {
    concurrencyPolicy: "Allow",
    suspend: false,
    successfulJobsHistoryLimit: 3,
    failedJobsHistoryLimit: 1,
  },
  "autoscaling.v2.HorizontalPodAutoscalerSpec": {
    minReplicas: 1,
    metrics: [{ type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 80 } } }],
  },
  "networking.v1.NetworkPolicyPort": { protocol: "TCP" },
  "rbac.v1.RoleRef": { apiGroup: "rbac.authorization.k8s.io" },
  "storage.v1.StorageClass": { reclaimPolicy: "Delete", volumeBindingMode: "Immediate" },
  "apiextensions.v1.CustomResourceDefinitionSpec": { conversion: { strategy: "None" } },
  "admissionregistration.v1.ValidatingWebhook": {
    failurePolicy: "Fail",
    matchPolicy: "Equivalent",
    namespaceSelector: {},
    objectSelector: {},
    timeoutSeconds: 10,
  },
  "admissionregistration.v1.MutatingWebhook": {
    failurePolicy: "Fail",
    matchPolicy: "Equivalent",
    namespaceSelector: {},
    objectSelector: {},
    timeoutSeconds: 10,
    reinvocationPolicy: "Never",
  },
  "admissionregistration.v1.Rule": { scope: "*" },
  "admissionregistration.v1.RuleWithOperations": { scope: "*" },
  "admissionregistration.v1.ServiceReference": { port: 443 },
  "apiregistration.v1.ServiceReference": { port: 443 },
  "apiextensions.v1.ServiceReference": { port: 443 },
};

function setMissing(draft: Draft, key: string, value: Json): void {
  if (draft[key] === undefined || draft[key] === null || draft[key] === "") draft[key] = value;
}

function childOf(draft: JsonObject, key: string): JsonObject {
  const child = draft[key];
  return isJsonObject(child) ? child : {};
}

function imagePullPolicy(image: string): string {
  // A text such as `ko://example.com/app` is not an image reference, so it has no tag.
  if (image.includes("://")) return "IfNotPresent";
  const digest = image.includes("@");
  const tag = /:([^:/@]+)(?:@|$)/.exec(image)?.[1] ?? (digest ? "" : "latest");
  return tag === "latest" ? "Always" : "IfNotPresent";
}

function defaultContainer(draft: Draft): void {
  setMissing(draft, "imagePullPolicy", imagePullPolicy(typeof draft.image === "string" ? draft.image : ""));
}

function defaultService(draft: Draft): void {
  setMissing(draft, "sessionAffinity", "None");
  setMissing(draft, "type", "ClusterIP");
  const external = draft.type === "NodePort" || draft.type === "LoadBalancer";
  if (external) setMissing(draft, "externalTrafficPolicy", "Cluster");
  if (external || draft.type === "ClusterIP") setMissing(draft, "internalTrafficPolicy", "Cluster");
  if (draft.type === "LoadBalancer") setMissing(draft, "allocateLoadBalancerNodePorts", true);
  if (draft.sessionAffinity === "None") delete draft.sessionAffinityConfig;
  if (draft.sessionAffinity === "ClientIP") {
    setMissing(draft, "sessionAffinityConfig", { clientIP: { timeoutSeconds: 10800 } });
  }
}

function defaultRollingUpdate(draft: Draft, values: JsonObject): void {
  if (draft.type !== "RollingUpdate") return;
  draft.rollingUpdate = { ...values, ...childOf(draft, "rollingUpdate") };
}

/** A partition gets its default if `type` is unset, or if `rollingUpdate` is set. */
function defaultStatefulUpdate(draft: Draft): void {
  if (draft.type === undefined || draft.type === "") draft.rollingUpdate ??= {};
  setMissing(draft, "type", "RollingUpdate");
  if (draft.rollingUpdate !== undefined) defaultRollingUpdate(draft, { partition: 0 });
}

function defaultClaimTemplates(draft: Draft): void {
  if (!Array.isArray(draft.volumeClaimTemplates)) return;
  const type = { apiVersion: "v1", kind: "PersistentVolumeClaim" };
  draft.volumeClaimTemplates = draft.volumeClaimTemplates.map((claim: Json) =>
    isJsonObject(claim) ? { ...claim, ...type } : claim,
  );
}

/** Unset selectors and labels get the labels of the template. */
function defaultReplicationController(draft: Draft): void {
  const spec = childOf(draft, "spec");
  const labels = childOf(childOf(childOf(spec, "template"), "metadata"), "labels");
  if (Object.keys(labels).length === 0) return;
  const metadata = childOf(draft, "metadata");
  if (Object.keys(childOf(spec, "selector")).length === 0) draft.spec = { ...spec, selector: labels };
  if (Object.keys(childOf(metadata, "labels")).length === 0) draft.metadata = { ...metadata, labels };
}

function defaultJob(draft: Draft): void {
  const spec: Draft = { ...(childOf(draft, "spec") as Draft) };
  if (spec.completions === undefined && spec.parallelism === undefined) spec.completions = 1;
  setMissing(spec, "parallelism", 1);
  setMissing(spec, "backoffLimit", 6);
  setMissing(spec, "completionMode", "NonIndexed");
  setMissing(spec, "suspend", false);
  setMissing(spec, "podReplacementPolicy", spec.podFailurePolicy === undefined ? "TerminatingOrFailed" : "Failed");
  draft.spec = spec;
}

function defaultPodSpec(draft: Draft): void {
  const account = draft.serviceAccountName ?? draft.serviceAccount;
  if (account === undefined) return;
  draft.serviceAccountName = account;
  draft.serviceAccount = account;
}

/** In Pods, limits are the default for requests. In templates they are not. */
function defaultPod(draft: Draft): void {
  const spec: Draft = { ...(childOf(draft, "spec") as Draft) };
  setMissing(spec, "enableServiceLinks", true);
  for (const list of ["containers", "initContainers"]) {
    const containers = spec[list];
    if (!Array.isArray(containers)) continue;
    spec[list] = containers.map((container: Json) => {
      if (!isJsonObject(container)) return container;
      const exposed = spec.hostNetwork === true ? withHostPorts(container) : container;
      const resources = childOf(container, "resources");
      if (!isJsonObject(resources.limits)) return exposed;
      const requests = { ...resources.limits, ...childOf(resources, "requests") };
      return { ...exposed, resources: { ...resources, requests } };
    });
  }
  draft.spec = spec;
}

/** A Pod with the node's network listens on ports of the node. */
function withHostPorts(container: JsonObject): JsonObject {
  if (!Array.isArray(container.ports)) return container;
  const ports = container.ports.map((port: Json) => {
    if (!isJsonObject(port) || port.containerPort === undefined) return port;
    return { ...port, hostPort: port.hostPort ?? port.containerPort };
  });
  return { ...container, ports };
}

function defaultNetworkPolicy(draft: Draft): void {
  if (draft.policyTypes === undefined)
    draft.policyTypes = draft.egress === undefined ? ["Ingress"] : ["Ingress", "Egress"];
}

function defaultSubject(draft: Draft): void {
  if (draft.kind === "User" || draft.kind === "Group") setMissing(draft, "apiGroup", "rbac.authorization.k8s.io");
}

function defaultCrdNames(draft: Draft): void {
  if (typeof draft.kind !== "string" || draft.kind === "") return;
  setMissing(draft, "singular", draft.kind.toLowerCase());
  setMissing(draft, "listKind", `${draft.kind}List`);
}

function defaultNamespace(draft: Draft): void {
  const metadata = childOf(draft, "metadata");
  if (typeof metadata.name !== "string" || metadata.name === "") return;
  const labels = { ...childOf(metadata, "labels"), "kubernetes.io/metadata.name": metadata.name };
  draft.metadata = { ...metadata, labels };
}

function moveStringData(draft: Draft): void {
  const given = draft.stringData;
  if (!isJsonObject(given)) return;
  const data: Draft = { ...(childOf(draft, "data") as Draft) };
  for (const [key, value] of Object.entries(given)) {
    data[key] = Buffer.from(typeof value === "string" ? value : "").toString("base64");
  }
  delete draft.stringData;
  draft.data = data;
}

function defaultTargetPort(draft: Draft): void {
  if (draft.targetPort === undefined || draft.targetPort === "" || draft.targetPort === 0)
    draft.targetPort = draft.port ?? 0;
}

/** The conversion of DaemonSets writes the template generation as an annotation. */
function defaultDaemonSet(draft: Draft): void {
  const metadata = childOf(draft, "metadata");
  const annotations = { "deprecated.daemonset.template.generation": "0", ...childOf(metadata, "annotations") };
  draft.metadata = { ...metadata, annotations };
}

function defaultVolume(draft: Draft): void {
  if (Object.keys(draft).length === 1) draft.emptyDir = {};
}

function defaultIngressAddress(draft: Draft): void {
  if (draft.ip !== undefined) setMissing(draft, "ipMode", "VIP");
}

/** Defaults that depend on other fields. */
const computed: Readonly<Record<string, (draft: Draft) => void>> = {
  "core.v1.Container": defaultContainer,
  "core.v1.EphemeralContainer": defaultContainer,
  "core.v1.ServiceSpec": defaultService,
  "core.v1.ServicePort": defaultTargetPort,
  "core.v1.PodSpec": defaultPodSpec,
  "core.v1.Pod": defaultPod,
  "core.v1.Secret": moveStringData,
  "core.v1.Namespace": defaultNamespace,
  "apps.v1.DeploymentStrategy": (draft) => defaultRollingUpdate(draft, { maxUnavailable: "25%", maxSurge: "25%" }),
  "apps.v1.StatefulSetUpdateStrategy": defaultStatefulUpdate,
  "apps.v1.StatefulSetSpec": defaultClaimTemplates,
  "core.v1.ReplicationController": defaultReplicationController,
  "apps.v1.DaemonSetUpdateStrategy": (draft) => defaultRollingUpdate(draft, { maxUnavailable: 1, maxSurge: 0 }),
  "batch.v1.Job": defaultJob,
  "autoscaling.v1.HorizontalPodAutoscaler": defaultAutoscaler,
  "autoscaling.v2.HorizontalPodAutoscalerBehavior": defaultScaling,
  "networking.v1.NetworkPolicySpec": defaultNetworkPolicy,
  "rbac.v1.Subject": defaultSubject,
  "apiextensions.v1.CustomResourceDefinitionNames": defaultCrdNames,
  "apps.v1.DaemonSet": defaultDaemonSet,
  "core.v1.Volume": defaultVolume,
  "core.v1.LoadBalancerIngress": defaultIngressAddress,
};

/** Sets the defaults of one struct. The nested structs have their defaults already. */
export function applyDefaults(typeName: string, draft: Draft): void {
  for (const [key, value] of Object.entries(constants[typeName] ?? {})) setMissing(draft, key, value ?? null);
  computed[typeName]?.(draft);
}
