import type { JsonObject } from "#shared/base/json.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";

const benchGroup = "bench.example.com";

/** Objects that exist before a set is applied; they belong to no set. */
export function groundObjects(namespaces: readonly string[]): readonly ManifestObject[] {
  const definitions = ["Widget", "Gauge"].map((kind) => definition(kind, ["size", "extra"]));
  return [...namespaces.map((name) => object("v1", "Namespace", { name }, {})), ...definitions];
}

/** @param fields - the fields of the spec; all are strings. */
export function definition(kind: string, fields: readonly string[]): ManifestObject {
  const plural = `${kind.toLowerCase()}s`;
  const properties = Object.fromEntries(fields.map((field) => [field, { type: "string" }]));
  const openAPIV3Schema = { type: "object", properties: { spec: { type: "object", properties } } };
  return object(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    { name: `${plural}.${benchGroup}` },
    {
      spec: {
        group: benchGroup,
        scope: "Namespaced",
        names: { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase() },
        versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema } }],
      },
    },
  );
}

interface Place {
  readonly namespace: string;
  /** The value that a new revision changes everywhere. */
  readonly revision: string;
}

type Maker = (name: string, place: Place) => ManifestObject;

/** The share of each kind in a hundred objects, about as in the repository of a platform team. */
const mixture: readonly (readonly [share: number, make: Maker])[] = [
  [38, configMap],
  [16, deployment],
  [12, service],
  [8, serviceAccount],
  [6, role],
  [6, roleBinding],
  [4, secret],
  [2, networkPolicy],
  [2, cronJob],
  [2, clusterRole],
  [2, clusterRoleBinding],
  [2, (name, place) => custom("Widget", name, place)],
];

/** This number of objects in the mixture, and a Gauge as the last. A new revision changes every object. */
export function benchObjects(count: number, place: Place): readonly ManifestObject[] {
  const makers = mixture.flatMap(([share, make]) => Array.from({ length: share }, () => make));
  return Array.from({ length: count }, (_, index) => {
    // The stride and 100 have no common divisor, so that a small set also contains every kind.
    const make = makers[(index * 37) % makers.length] ?? configMap;
    const name = `bench-${String(index).padStart(4, "0")}`;
    return index === count - 1 ? custom("Gauge", name, place) : make(name, place);
  });
}

/** Objects of several kinds that a later revision lacks. */
export function leavingObjects(place: Place): readonly ManifestObject[] {
  const makers: readonly Maker[] = [configMap, service, role, secret, (name, at) => custom("Widget", name, at)];
  return makers.map((make, index) => make(`leaving-${index}`, place));
}

function object(apiVersion: string, kind: string, metadata: ManifestObject["metadata"], rest: JsonObject) {
  return { apiVersion, kind, metadata, ...rest } satisfies ManifestObject;
}

/** Metadata as people write it. */
function metadata(name: string, { namespace, revision }: Place) {
  return {
    name,
    namespace,
    labels: { "app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "bench" },
    annotations: { "bench.example.com/revision": revision },
  };
}

function configMap(name: string, place: Place): ManifestObject {
  const settings = Array.from({ length: 12 }, (_, index) => `setting.${index} = value-${index}`).join("\n");
  const data = { revision: place.revision, "app.properties": settings, mode: "steady" };
  return object("v1", "ConfigMap", metadata(name, place), { data });
}

function secret(name: string, place: Place): ManifestObject {
  const data = { password: Buffer.from(`of revision ${place.revision}`).toString("base64") };
  return object("v1", "Secret", metadata(name, place), { type: "Opaque", data });
}

function serviceAccount(name: string, place: Place): ManifestObject {
  return object("v1", "ServiceAccount", metadata(name, place), { automountServiceAccountToken: false });
}

/** A headless Service, because the address range of a small cluster would soon be used up. */
function service(name: string, place: Place): ManifestObject {
  const ports = [
    { name: "http", port: 80, targetPort: "http", protocol: "TCP" },
    { name: "metrics", port: 9090, targetPort: "metrics", protocol: "TCP" },
  ];
  const spec = { clusterIP: "None", selector: { "app.kubernetes.io/name": name }, ports };
  return object("v1", "Service", metadata(name, place), { spec });
}

/** A Deployment without replicas, because the benchmark measures the API server and needs no Pods. */
function deployment(name: string, place: Place): ManifestObject {
  const labels = { "app.kubernetes.io/name": name };
  const container = {
    name: "web",
    image: "registry.example.com/web:1",
    ports: [{ name: "http", containerPort: 8080, protocol: "TCP" }],
    env: [
      { name: "REVISION", value: place.revision },
      { name: "LOG_LEVEL", value: "info" },
      { name: "REGION", value: "eu-west-1" },
    ],
    resources: { requests: { cpu: "100m", memory: "128Mi" }, limits: { memory: "256Mi" } },
    readinessProbe: { httpGet: { path: "/healthz", port: "http" }, periodSeconds: 5 },
  };
  const initContainers = ["prepare", "migrate"].map((step) => ({
    name: step,
    image: "registry.example.com/web:1",
    args: [step],
  }));
  const spec = {
    replicas: 0,
    selector: { matchLabels: labels },
    template: { metadata: { labels }, spec: { initContainers, containers: [container] } },
  };
  return object("apps/v1", "Deployment", metadata(name, place), { spec });
}

function role(name: string, place: Place): ManifestObject {
  const rules = [{ apiGroups: [""], resources: ["configmaps"], verbs: ["get", "list", "watch"] }];
  return object("rbac.authorization.k8s.io/v1", "Role", metadata(name, place), { rules });
}

function roleBinding(name: string, place: Place): ManifestObject {
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name };
  const subjects = [{ kind: "ServiceAccount", name, namespace: place.namespace }];
  return object("rbac.authorization.k8s.io/v1", "RoleBinding", metadata(name, place), { roleRef, subjects });
}

function clusterRole(name: string, place: Place): ManifestObject {
  const { namespace, ...rest } = metadata(`${place.namespace}-${name}`, place);
  const rules = [{ apiGroups: [benchGroup], resources: ["widgets"], verbs: ["get", "list", "watch"] }];
  return object("rbac.authorization.k8s.io/v1", "ClusterRole", rest, { rules });
}

function clusterRoleBinding(name: string, place: Place): ManifestObject {
  const { namespace, ...rest } = metadata(`${place.namespace}-${name}`, place);
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: rest.name };
  const subjects = [{ kind: "ServiceAccount", name, namespace }];
  return object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", rest, { roleRef, subjects });
}

function networkPolicy(name: string, place: Place): ManifestObject {
  const from = [{ podSelector: { matchLabels: { "app.kubernetes.io/part-of": "bench" } } }];
  const podSelector = { matchLabels: { "app.kubernetes.io/name": name } };
  const spec = { podSelector, policyTypes: ["Ingress"], ingress: [{ from }] };
  return object("networking.k8s.io/v1", "NetworkPolicy", metadata(name, place), { spec });
}

function cronJob(name: string, place: Place): ManifestObject {
  const container = { name: "job", image: "registry.example.com/job:1", args: ["--revision", place.revision] };
  const template = { spec: { restartPolicy: "OnFailure", containers: [container] } };
  const spec = { schedule: "0 3 * * *", suspend: true, jobTemplate: { spec: { template } } };
  return object("batch/v1", "CronJob", metadata(name, place), { spec });
}

function custom(kind: string, name: string, place: Place): ManifestObject {
  return object(`${benchGroup}/v1`, kind, metadata(name, place), { spec: { size: place.revision, extra: "yes" } });
}
