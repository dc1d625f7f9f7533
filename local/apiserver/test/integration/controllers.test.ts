import { afterEach, beforeEach, expect, test } from "vitest";
import { type ClusterConnection, type ClusterHost, startClusterHost } from "#apiserver/cluster-host.ts";
import type { Json, JsonObject } from "#apiserver/json.ts";
import { listAt, stringAt, valueAt } from "#apiserver/object-fields.ts";
import { applyTo, clusterRequest, readFrom } from "#apiserver/test/support/cluster-request.ts";

const readyAfterMs = 1_000;
let now = 0;
let host: ClusterHost;
let cluster: ClusterConnection;

beforeEach(async () => {
  now = Date.parse("2026-01-01T00:00:00Z");
  host = await startClusterHost({ clock: () => now, readyAfterMs });
  cluster = host.addCluster("test");
});
afterEach(() => host.stop());

const apps = "/apis/apps/v1/namespaces/default";
const core = "/api/v1/namespaces/default";

function podTemplate(app: string, image = "img:1"): JsonObject {
  return { metadata: { labels: { app } }, spec: { containers: [{ name: "main", image }] } };
}

function workload(kind: string, name: string, spec: JsonObject = {}): JsonObject {
  const selector = { matchLabels: { app: name } };
  return { apiVersion: "apps/v1", kind, metadata: { name }, spec: { selector, template: podTemplate(name), ...spec } };
}

function condition(object: JsonObject | undefined, type: string): string | undefined {
  const found = listAt(object, "status", "conditions").find((each) => stringAt(each, "type") === type);
  return found === undefined ? undefined : `${stringAt(found, "status")} ${stringAt(found, "reason")}`;
}

async function items(path: string): Promise<readonly Json[]> {
  return listAt(await readFrom(cluster, path), "items");
}

async function names(path: string): Promise<string[]> {
  return (await items(path)).map((item) => stringAt(item, "metadata", "name") ?? "");
}

async function remove(path: string, options: JsonObject = {}): Promise<number> {
  return (await clusterRequest(cluster, { method: "DELETE", path, body: options })).status;
}

/** Advances the clock in steps of a second, because a rollout waits for its Pods several times. */
async function pass(seconds: number): Promise<void> {
  for (let step = 0; step < seconds; step += 1) {
    now += 1_000;
    await readFrom(cluster, "/version");
  }
}

test("a Deployment creates a ReplicaSet and Pods and becomes ready after a delay", async () => {
  await applyTo(cluster, `${apps}/deployments/web`, workload("Deployment", "web", { replicas: 2 }));
  const progressing = await readFrom(cluster, `${apps}/deployments/web`);
  expect(condition(progressing, "Available")).toBe("False MinimumReplicasUnavailable");
  expect(condition(progressing, "Progressing")).toBe("True ReplicaSetUpdated");
  expect(valueAt(progressing, "status", "observedGeneration")).toBe(1);

  await pass(1);
  const ready = await readFrom(cluster, `${apps}/deployments/web`);
  expect(ready?.status).toMatchObject({ replicas: 2, readyReplicas: 2, updatedReplicas: 2, availableReplicas: 2 });
  expect(condition(ready, "Available")).toBe("True MinimumReplicasAvailable");
  expect(condition(ready, "Progressing")).toBe("True NewReplicaSetAvailable");
  const managers = listAt(ready, "metadata", "managedFields").map((entry) => [
    stringAt(entry, "manager"),
    stringAt(entry, "subresource"),
  ]);
  expect(managers).toEqual([
    ["test", undefined],
    ["kube-controller-manager", "status"],
  ]);

  const [pod] = await items(`${core}/pods`);
  expect(stringAt(pod, "metadata", "labels", "app")).toBe("web");
  expect(stringAt(listAt(pod, "metadata", "ownerReferences")[0], "kind")).toBe("ReplicaSet");
});

test("an image that cannot be pulled keeps the old Pods until the progress deadline fails the rollout", async () => {
  await applyTo(cluster, `${apps}/deployments/web`, workload("Deployment", "web", { replicas: 1 }));
  await pass(2);
  const template = podTemplate("web", "registry.invalid/web:2");
  await applyTo(
    cluster,
    `${apps}/deployments/web`,
    workload("Deployment", "web", { template, progressDeadlineSeconds: 60 }),
  );
  await pass(2);
  const reasons = (await items(`${core}/pods`)).map((pod) =>
    stringAt(listAt(pod, "status", "containerStatuses")[0], "state", "waiting", "reason"),
  );
  expect(reasons.sort()).toEqual(["ImagePullBackOff", undefined]);
  expect(condition(await readFrom(cluster, `${apps}/deployments/web`), "Available")).toBe(
    "True MinimumReplicasAvailable",
  );

  now += 61_000;
  const late = await readFrom(cluster, `${apps}/deployments/web`);
  expect(condition(late, "Progressing")).toBe("False ProgressDeadlineExceeded");

  await applyTo(
    cluster,
    `${apps}/deployments/web`,
    workload("Deployment", "web", { template: podTemplate("web", "web:3") }),
  );
  await pass(3);
  const repaired = await readFrom(cluster, `${apps}/deployments/web`);
  expect(condition(repaired, "Progressing")).toBe("True NewReplicaSetAvailable");
  expect(await names(`${core}/pods`)).toHaveLength(1);
});

test("a rolling update keeps the minimum number of Pods available", async () => {
  await applyTo(cluster, `${apps}/deployments/web`, workload("Deployment", "web", { replicas: 4 }));
  await pass(2);
  await applyTo(
    cluster,
    `${apps}/deployments/web`,
    workload("Deployment", "web", { replicas: 4, template: podTemplate("web", "img:2") }),
  );
  const seen: number[] = [];
  for (let step = 0; step < 10; step += 1) {
    const deployment = await readFrom(cluster, `${apps}/deployments/web`);
    seen.push(Number(valueAt(deployment, "status", "availableReplicas") ?? 0));
    await pass(1);
  }
  expect(Math.min(...seen)).toBe(3);
  const done = await readFrom(cluster, `${apps}/deployments/web`);
  expect(done?.status).toMatchObject({ replicas: 4, updatedReplicas: 4, availableReplicas: 4 });
});

test("a StatefulSet, a DaemonSet, a Job and a claim become ready", async () => {
  await applyTo(cluster, `${apps}/statefulsets/db`, workload("StatefulSet", "db", { replicas: 2, serviceName: "db" }));
  await applyTo(cluster, `${apps}/daemonsets/agent`, workload("DaemonSet", "agent"));
  await applyTo(cluster, "/apis/batch/v1/namespaces/default/jobs/once", {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name: "once" },
    spec: { template: { spec: { restartPolicy: "Never", containers: [{ name: "main", image: "img:1" }] } } },
  });
  await applyTo(cluster, `${core}/persistentvolumeclaims/data`, {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { name: "data" },
    spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
  });
  expect((await names(`${core}/pods`)).filter((name) => name.startsWith("db-"))).toEqual(["db-0"]);
  await pass(3);
  expect((await names(`${core}/pods`)).filter((name) => name.startsWith("db-"))).toEqual(["db-0", "db-1"]);
  expect((await readFrom(cluster, `${apps}/statefulsets/db`))?.status).toMatchObject({
    readyReplicas: 2,
    updatedReplicas: 2,
  });
  expect((await readFrom(cluster, `${apps}/daemonsets/agent`))?.status).toMatchObject({
    numberReady: 1,
    desiredNumberScheduled: 1,
  });
  expect(condition(await readFrom(cluster, "/apis/batch/v1/namespaces/default/jobs/once"), "Complete")).toBe(
    "True CompletionsReached",
  );
  expect(stringAt(await readFrom(cluster, `${core}/persistentvolumeclaims/data`), "status", "phase")).toBe("Bound");
  expect(await remove(`${core}/persistentvolumeclaims/data`)).toBe(200);
  expect(await readFrom(cluster, `${core}/persistentvolumeclaims/data`)).toBeUndefined();
});

test("the EndpointSlice of a Service carries its labels and its ready Pods", async () => {
  await applyTo(cluster, `${core}/services/web`, {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "web", labels: { team: "x" } },
    spec: { selector: { app: "web" }, ports: [{ port: 80 }] },
  });
  await applyTo(cluster, `${apps}/deployments/web`, workload("Deployment", "web"));
  await pass(2);
  const [slice] = await items("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices");
  expect(valueAt(slice, "metadata", "labels")).toMatchObject({ team: "x", "kubernetes.io/service-name": "web" });
  expect(stringAt(listAt(slice, "metadata", "ownerReferences")[0], "kind")).toBe("Service");
  expect(listAt(slice, "endpoints")).toHaveLength(1);
});

test.each([
  ["Background", []],
  ["Foreground", []],
  ["Orphan", ["web"]],
] as const)(
  "deleting a Deployment with propagation policy %s leaves these of its ReplicaSets: %j",
  async (propagationPolicy, left) => {
    await applyTo(cluster, `${apps}/deployments/web`, workload("Deployment", "web"));
    await pass(1);
    expect(await remove(`${apps}/deployments/web`, { propagationPolicy })).toBe(200);
    expect(await readFrom(cluster, `${apps}/deployments/web`)).toBeUndefined();
    const sets = await items(`${apps}/replicasets`);
    expect(sets.map((set) => stringAt(set, "metadata", "labels", "app"))).toEqual(left);
    expect(sets.every((set) => valueAt(set, "metadata", "ownerReferences") === undefined)).toBe(true);
    expect(await names(`${core}/pods`)).toHaveLength(left.length);
  },
);

test("a deleted namespace empties itself and waits for finalizers of its objects", async () => {
  await applyTo(cluster, "/api/v1/namespaces/shop", {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: "shop" },
  });
  expect(await names("/api/v1/namespaces/shop/serviceaccounts")).toEqual(["default"]);
  const held = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "held", finalizers: ["example.com/hold"] } };
  await applyTo(cluster, "/api/v1/namespaces/shop/configmaps/held", held);
  await remove("/api/v1/namespaces/shop");
  const terminating = await readFrom(cluster, "/api/v1/namespaces/shop");
  expect(stringAt(terminating, "status", "phase")).toBe("Terminating");
  expect(condition(terminating, "NamespaceFinalizersRemaining")).toBe("True SomeFinalizersRemain");
  await applyTo(cluster, "/api/v1/namespaces/shop/configmaps/held", { ...held, metadata: { name: "held" } });
  expect(await readFrom(cluster, "/api/v1/namespaces/shop")).toBeUndefined();
  expect(host.objects("test").filter((object) => stringAt(object, "metadata", "namespace") === "shop")).toEqual([]);
});

test("a custom kind is served a moment after its definition and keeps 64-bit integers", async () => {
  const spec = { type: "object", properties: { size: { type: "integer", format: "int64" } } };
  await applyTo(cluster, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com", {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "widgets.example.com" },
    spec: {
      group: "example.com",
      scope: "Namespaced",
      names: { plural: "widgets", kind: "Widget" },
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: "object", properties: { spec } } },
        },
      ],
    },
  });
  const path = "/apis/example.com/v1/namespaces/default/widgets/w";
  expect((await clusterRequest(cluster, { path })).text).toBe("404 page not found\n");
  await pass(1);
  const widget = {
    apiVersion: "example.com/v1",
    kind: "Widget",
    metadata: { name: "w" },
    spec: { size: 9007199254740993n },
  };
  await applyTo(cluster, path, widget);
  expect(valueAt(await readFrom(cluster, path), "spec", "size")).toBe(9007199254740993n);
});

test("an APIService is available, and its API is served, while a Pod of its Service is ready", async () => {
  const path = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io";
  const service = { name: "adapter", namespace: "default" };
  const api = { group: "metrics.k8s.io", version: "v1beta1", groupPriorityMinimum: 100, versionPriority: 100 };
  await applyTo(cluster, path, {
    apiVersion: "apiregistration.k8s.io/v1",
    kind: "APIService",
    metadata: { name: "v1beta1.metrics.k8s.io" },
    spec: { ...api, service },
  });
  await applyTo(cluster, `${core}/services/adapter`, {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "adapter" },
    spec: { selector: { app: "adapter" }, ports: [{ name: "https", port: 443, targetPort: 6443 }] },
  });
  await applyTo(cluster, `${apps}/deployments/adapter`, workload("Deployment", "adapter"));
  await pass(0);
  expect(condition(await readFrom(cluster, path), "Available")).toBe("False MissingEndpoints");
  expect((await clusterRequest(cluster, { path: "/apis/metrics.k8s.io/v1beta1" })).status).toBe(503);
  await pass(2);
  expect(condition(await readFrom(cluster, path), "Available")).toBe("True Passed");
  expect(await readFrom(cluster, "/apis/metrics.k8s.io/v1beta1")).toMatchObject({ resources: [] });
  expect(await names("/apis/apiregistration.k8s.io/v1/apiservices")).toEqual(["v1beta1.metrics.k8s.io"]);
  await remove(`${apps}/deployments/adapter`);
  await pass(2);
  expect(condition(await readFrom(cluster, path), "Available")).toBe("False MissingEndpoints");
});
