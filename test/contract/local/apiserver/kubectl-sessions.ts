import type { JsonObject } from "#shared/base/json.ts";

export interface KubectlCommand {
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** Commands of kubectl on an empty server; `test/fixtures/kubectl-sessions/NAME.txt` has their recorded output. */
export interface KubectlSession {
  readonly name: string;
  /** "on" runs the controllers of kube-controller-manager, but no scheduler. */
  readonly controllers: "on" | "off";
  /** The files in kubectl's working directory, by name; several objects become a List. */
  readonly files: Readonly<Record<string, readonly JsonObject[]>>;
  readonly commands: readonly KubectlCommand[];
}

const namespace = "shop";

function kubectl(line: string, env: Readonly<Record<string, string>> = {}): KubectlCommand {
  const args = [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "");
  return { args, env };
}

function configMap(name: string, data: Readonly<Record<string, string>>): JsonObject {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace }, data };
}

const shop: JsonObject = {
  apiVersion: "v1",
  kind: "Namespace",
  metadata: { name: namespace, labels: { team: "shop" } },
};

function service(port: number): JsonObject {
  const ports = [{ name: "http", port, targetPort: "http" }];
  return {
    ...{ apiVersion: "v1", kind: "Service", metadata: { name: "web", namespace } },
    spec: { clusterIP: "None", selector: { app: "web" }, ports },
  };
}

function deployment(image: string, extra: JsonObject = {}): JsonObject {
  const container = {
    name: "web",
    image,
    ports: [{ name: "http", containerPort: 8080 }],
    env: [{ name: "A", value: "1" }],
  };
  return {
    ...{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "web", namespace, labels: { app: "web" } } },
    spec: {
      replicas: 2,
      selector: { matchLabels: { app: "web" } },
      template: { metadata: { labels: { app: "web" } }, spec: { containers: [container] } },
      ...extra,
    },
  };
}

const widgets: JsonObject = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "widgets.shop.example.com" },
  spec: {
    group: "shop.example.com",
    scope: "Namespaced",
    names: { plural: "widgets", singular: "widget", kind: "Widget", shortNames: ["wd"] },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        subresources: { status: {} },
        additionalPrinterColumns: [
          { name: "Size", type: "string", jsonPath: ".spec.size" },
          { name: "Count", type: "integer", jsonPath: ".spec.count" },
        ],
        schema: {
          openAPIV3Schema: {
            type: "object",
            properties: {
              spec: {
                type: "object",
                required: ["size"],
                properties: {
                  size: { type: "string", enum: ["s", "m", "l"] },
                  count: { type: "integer", minimum: 1, default: 1 },
                },
              },
              status: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
            },
          },
        },
      },
    ],
  },
};

function widget(spec: JsonObject): JsonObject {
  return { apiVersion: "shop.example.com/v1", kind: "Widget", metadata: { name: "w", namespace }, spec };
}

const availableStatus = JSON.stringify({
  status: {
    ...{ observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2 },
    conditions: [{ type: "Available", status: "True", reason: "MinimumReplicasAvailable" }],
  },
});

const applySet = { KUBECTL_APPLYSET: "true" };

export const kubectlSessions: readonly KubectlSession[] = [
  {
    name: "server-side-apply",
    controllers: "off",
    files: {
      "namespace.json": [shop],
      "web.json": [configMap("settings", { color: "blue", size: "1" }), service(80), deployment("web:1")],
      "web2.json": [configMap("settings", { color: "green" }), service(8080), deployment("web:2")],
      "other.json": [configMap("settings", { color: "red", shape: "round" })],
      "shape.json": [configMap("settings", { shape: "round" })],
    },
    commands: [
      kubectl("create -f namespace.json"),
      kubectl("create -f namespace.json"),
      kubectl("apply --server-side --dry-run=server -f web.json"),
      kubectl("apply --server-side -f web.json"),
      kubectl("apply --server-side -f web.json"),
      kubectl("get -f web.json"),
      kubectl("diff --server-side -f web.json"),
      kubectl("apply --server-side --field-manager=other -f shape.json"),
      kubectl("apply --server-side --field-manager=other -f other.json"),
      kubectl("edit -n shop configmap settings", { KUBE_EDITOR: "sed -i s/blue/black/" }),
      kubectl("set image -n shop deployment/web web=web:hotfix"),
      kubectl("diff --server-side --force-conflicts -f web.json"),
      kubectl("diff --server-side -f web.json"),
      kubectl("apply --server-side -f web.json"),
      kubectl("apply --server-side --force-conflicts -f web.json"),
      kubectl("get configmap -n shop settings -o yaml --show-managed-fields"),
      kubectl("apply --server-side -f web2.json"),
      kubectl("get configmap -n shop settings -o yaml"),
      kubectl("get service -n shop web -o yaml"),
      kubectl("get deployment -n shop web -o yaml"),
      kubectl("delete -f web2.json"),
      kubectl("delete -f web2.json"),
      kubectl("delete --ignore-not-found -f web2.json"),
      kubectl("get all,configmap -n shop"),
    ],
  },
  {
    name: "prune",
    controllers: "off",
    files: {
      "namespace.json": [shop],
      "three.json": [configMap("a", { k: "1" }), configMap("b", { k: "1" }), deployment("web:1")],
      "two.json": [configMap("a", { k: "2" }), deployment("web:1")],
      "one.json": [configMap("a", { k: "2" })],
      "foreign.json": [configMap("foreign", { k: "1" })],
    },
    commands: [
      kubectl("create -f namespace.json -f foreign.json"),
      kubectl("apply -n shop --server-side --prune --applyset=configmaps/set -f three.json", applySet),
      kubectl("get configmaps,deployments -n shop --show-labels"),
      kubectl("apply -n shop --server-side --prune --applyset=configmaps/set -f two.json --dry-run=server", applySet),
      kubectl("apply -n shop --server-side --prune --applyset=configmaps/set -f two.json", applySet),
      kubectl("apply -n shop --server-side --prune --applyset=configmaps/set -f one.json", applySet),
      kubectl("apply -n shop --server-side --prune --applyset=configmaps/set -f one.json", applySet),
      kubectl("get configmap -n shop set -o yaml"),
      kubectl("get configmaps,deployments -n shop"),
      kubectl("apply -n shop --server-side --prune --applyset=configmaps/other -f one.json", applySet),
    ],
  },
  {
    name: "client-side",
    controllers: "off",
    files: {
      "namespace.json": [shop],
      "v1.json": [configMap("settings", { color: "blue", size: "1" }), deployment("web:1")],
      "v2.json": [configMap("settings", { color: "green" }), deployment("web:2")],
      "bad.json": [deployment("web:1", { replicas: -1 })],
      "typo.json": [deployment("web:1", { replica: 2 })],
    },
    commands: [
      kubectl("apply -f namespace.json"),
      kubectl("apply -f v1.json"),
      kubectl("apply -f v1.json"),
      kubectl("diff -f v2.json"),
      kubectl("apply -f v2.json"),
      kubectl("apply -f bad.json"),
      // No "apply" here: if the strict decoding of a strategic patch fails, the message has the patch as Go prints a map.
      kubectl("replace -f typo.json"),
      kubectl("replace --validate=warn --dry-run=server -f typo.json"),
      kubectl("replace -f v1.json"),
      kubectl(`patch -n shop configmap settings --type=merge -p '{"data":{"size":null,"more":"1"}}'`),
      kubectl(
        `patch -n shop deployment web -p '{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:3"}]}}}}'`,
      ),
      kubectl(`patch -n shop deployment web --type=json -p '[{"op":"test","path":"/spec/replicas","value":7}]'`),
      kubectl("label -n shop configmap settings tier=back"),
      kubectl("label -n shop configmap settings tier=front"),
      kubectl("annotate -n shop configmap settings note=hello"),
      kubectl("scale -n shop deployment/web --replicas=3"),
      kubectl("get deployments -n shop -o wide"),
      kubectl("get configmaps -A -l tier=back -o name"),
      kubectl("get configmaps -n shop -l 'tier in (front)' --show-labels"),
      kubectl("get configmaps -n shop --field-selector=metadata.name=settings -o jsonpath={.items[*].data.more}"),
      kubectl("get -n shop configmap nope"),
      kubectl("get nopes"),
      kubectl("get -n shop configmap settings -o yaml"),
      kubectl("apply --server-side -f v2.json"),
      kubectl("apply --server-side --force-conflicts -f v2.json"),
      kubectl("describe -n shop configmap settings"),
      kubectl("delete -n shop configmap -l tier=none"),
      kubectl("delete -n shop configmap nope"),
      kubectl("delete -n shop configmap settings --wait=false"),
      kubectl("delete -f v1.json"),
    ],
  },
  {
    name: "wait",
    controllers: "off",
    files: { "namespace.json": [shop], "web.json": [configMap("held", {}), deployment("web:1")] },
    commands: [
      kubectl("create -f namespace.json -f web.json"),
      kubectl("rollout status -n shop deployment/web --timeout=4s"),
      kubectl("wait -n shop deployment/web --for=condition=Available --timeout=4s"),
      kubectl("wait -n shop configmap/nope --for=delete --timeout=4s"),
      kubectl(`patch -n shop deployment web --subresource=status --type=merge -p '${availableStatus}'`),
      kubectl("rollout status -n shop deployment/web --timeout=30s"),
      kubectl("wait -n shop deployment/web --for=condition=Available --timeout=30s"),
      kubectl("wait -n shop deployment/web --for=jsonpath={.status.readyReplicas}=2 --timeout=30s"),
      kubectl("rollout restart -n shop deployment/web"),
      kubectl("rollout status -n shop deployment/web --watch=false"),
      kubectl(`patch -n shop configmap held --type=merge -p '{"metadata":{"finalizers":["example.com/hold"]}}'`),
      kubectl("delete -n shop configmap held --timeout=4s"),
      kubectl("get -n shop configmap held -o jsonpath={.metadata.finalizers}"),
      kubectl(`patch -n shop configmap held --type=merge -p '{"metadata":{"finalizers":null}}'`),
      kubectl("wait -n shop configmap/held --for=delete --timeout=30s"),
      kubectl("delete -n shop deployment web"),
    ],
  },
  {
    name: "custom-resources",
    controllers: "off",
    files: {
      "namespace.json": [shop],
      "definition.json": [widgets],
      "widget.json": [widget({ size: "m" })],
      "bad.json": [widget({ size: "xl" })],
      "unknown.json": [widget({ size: "m", colour: "red" })],
    },
    commands: [
      kubectl("create -f namespace.json"),
      kubectl("get widgets"),
      kubectl("apply --server-side -f definition.json"),
      kubectl("wait --for=condition=Established crd/widgets.shop.example.com --timeout=30s"),
      kubectl("get crd widgets.shop.example.com"),
      kubectl("api-resources --api-group=shop.example.com"),
      kubectl("apply --server-side -f widget.json"),
      kubectl("apply --server-side -f widget.json"),
      kubectl("get widgets -n shop"),
      kubectl("get wd -n shop w -o yaml"),
      kubectl("apply --server-side -f bad.json"),
      kubectl("apply --server-side -f unknown.json"),
      kubectl("apply --server-side --validate=ignore -f unknown.json"),
      kubectl(`patch -n shop widget w --subresource=status --type=merge -p '{"status":{"ready":true}}'`),
      kubectl("get -n shop widget w -o jsonpath={.spec}{.status}"),
      kubectl("diff --server-side -f widget.json"),
      kubectl("delete -f widget.json"),
      kubectl("delete -f definition.json"),
      kubectl("get widgets -n shop"),
    ],
  },
  {
    name: "discovery",
    controllers: "off",
    files: {},
    commands: [
      kubectl("api-resources --api-group=apps"),
      kubectl("api-resources --api-group=apps -o wide"),
      kubectl("api-resources --api-group=batch"),
      kubectl("api-resources --api-group=rbac.authorization.k8s.io"),
      kubectl("api-resources --api-group=apiextensions.k8s.io"),
      kubectl("api-resources --api-group=policy"),
      kubectl("api-resources --api-group=nope.example.com"),
      kubectl("get namespaces"),
      kubectl("get namespace kube-system -o yaml"),
      kubectl("get --raw /readyz"),
      kubectl("get --raw /nope"),
    ],
  },
  {
    name: "with-controllers",
    controllers: "on",
    files: {
      "namespace.json": [shop],
      "web.json": [service(80), deployment("web:1")],
      "web2.json": [service(80), deployment("web:2")],
    },
    commands: [
      kubectl("create -f namespace.json"),
      kubectl("wait -n shop serviceaccount/default --for=create --timeout=30s"),
      kubectl("apply --server-side -f web.json"),
      kubectl("wait -n shop deployment/web --for=jsonpath={.status.unavailableReplicas}=2 --timeout=30s"),
      kubectl("rollout status -n shop deployment/web --timeout=4s"),
      kubectl("get deployments -n shop -o wide"),
      kubectl("get replicasets -n shop"),
      kubectl(
        "get pods -n shop --no-headers -o custom-columns=STATUS:.status.phase,OWNER:.metadata.ownerReferences[0].kind",
      ),
      kubectl("apply --server-side -f web.json"),
      kubectl("apply --server-side -f web2.json"),
      kubectl("wait -n shop deployment/web --for=jsonpath={.status.updatedReplicas}=1 --timeout=30s"),
      kubectl("rollout status -n shop deployment/web --watch=false"),
      kubectl("delete --cascade=foreground -f web2.json --timeout=40s"),
      kubectl("get all -n shop"),
      kubectl("delete namespace shop --timeout=40s"),
      kubectl("get namespace shop"),
    ],
  },
];
