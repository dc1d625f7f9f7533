import { keyOf } from "#apiserver/cluster-store.ts";
import type { ControllerContext } from "#apiserver/controllers/controller-context.ts";
import { uidOf } from "#apiserver/controllers/owner-index.ts";
import { podResource, readySince } from "#apiserver/controllers/pod-controller.ts";
import { isDeleting, ownerReference } from "#apiserver/controllers/workload.ts";
import { deepEqual } from "#apiserver/deep-equal.ts";
import { isJsonObject, type Json, type JsonObject } from "#apiserver/json.ts";
import { labelsOf, listAt, stringAt, valueAt } from "#apiserver/object-fields.ts";
import { nameOf, withMetadata } from "#apiserver/operations/object-meta.ts";
import { matchesLabels } from "#apiserver/operations/table.ts";
import { generatedSuffix } from "#apiserver/operations/write-operations.ts";

export const serviceResource = "/services";
export const sliceResource = "discovery.k8s.io/endpointslices";
const triggerTime = "endpoints.kubernetes.io/last-change-trigger-time";

/**
 * Keeps the Endpoints and the EndpointSlice of a Service. Both carry the labels of the Service, as on a real cluster.
 */
export function reconcileService(context: ControllerContext, service: JsonObject): void {
  const selector = valueAt(service, "spec", "selector");
  if (isDeleting(service) || !isJsonObject(selector) || stringAt(service, "spec", "type") === "ExternalName") return;
  const namespace = stringAt(service, "metadata", "namespace") ?? "";
  const pods = context.cluster.store
    .list(podResource, namespace)
    .filter(
      (pod) => matchesLabels(pod, selector) && stringAt(pod, "status", "podIP") !== undefined && !isDeleting(pod),
    );
  keepSlice(context, service, pods);
  keepEndpoints(context, service, pods);
}

function portsOf(service: JsonObject, pods: readonly JsonObject[]): JsonObject[] {
  return listAt(service, "spec", "ports").map((port) => ({
    name: stringAt(port, "name") ?? "",
    protocol: stringAt(port, "protocol") ?? "TCP",
    port: targetPort(port, pods),
  }));
}

function targetPort(port: Json, pods: readonly JsonObject[]): Json {
  const target = valueAt(port, "targetPort") ?? valueAt(port, "port") ?? 0;
  if (typeof target === "number") return target;
  const ports = pods.flatMap((pod) =>
    listAt(pod, "spec", "containers").flatMap((container) => listAt(container, "ports")),
  );
  const named = ports.find((each) => stringAt(each, "name") === target);
  return valueAt(named, "containerPort") ?? 0;
}

function reference(pod: JsonObject): JsonObject {
  return { kind: "Pod", namespace: stringAt(pod, "metadata", "namespace"), name: nameOf(pod), uid: uidOf(pod) };
}

function keepSlice(context: ControllerContext, service: JsonObject, pods: readonly JsonObject[]): void {
  const labels = {
    ...labelsOf(service),
    "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    "kubernetes.io/service-name": nameOf(service),
  };
  const endpoints = pods.map((pod) => {
    const ready = readySince(pod) !== undefined;
    return {
      addresses: [stringAt(pod, "status", "podIP") ?? ""],
      conditions: { ready, serving: ready, terminating: false },
      targetRef: reference(pod),
    };
  });
  const content = {
    endpoints: endpoints.length === 0 ? null : endpoints,
    ports: endpoints.length === 0 ? null : portsOf(service, pods),
  };
  const [existing] = context.owners.dependents(uidOf(service), sliceResource);
  if (existing !== undefined) {
    const next = withMetadata({ ...existing.object, ...content }, { labels });
    if (!deepEqual(next, existing.object)) context.write(sliceResource, next);
    return;
  }
  const name = nameOf(service);
  context.create(sliceResource, {
    metadata: {
      name: `${name}-${generatedSuffix()}`,
      generateName: `${name}-`,
      namespace: stringAt(service, "metadata", "namespace"),
      labels,
      annotations: { [triggerTime]: context.cluster.now() },
      ownerReferences: [ownerReference(service)],
    },
    addressType: "IPv4",
    ...content,
  });
}

function keepEndpoints(context: ControllerContext, service: JsonObject, pods: readonly JsonObject[]): void {
  const labels = { ...labelsOf(service), "endpoints.kubernetes.io/managed-by": "endpoint-controller" };
  const addresses = pods
    .filter((pod) => readySince(pod) !== undefined)
    .map((pod) => ({ ip: stringAt(pod, "status", "podIP") ?? "", targetRef: reference(pod) }));
  const subsets = addresses.length === 0 ? undefined : [{ addresses, ports: portsOf(service, pods) }];
  const existing = context.cluster.store.get("/endpoints", keyOf(service));
  if (existing === undefined) {
    context.create("/endpoints", {
      metadata: {
        name: nameOf(service),
        namespace: stringAt(service, "metadata", "namespace"),
        labels,
        annotations: { [triggerTime]: context.cluster.now() },
      },
      ...(subsets === undefined ? {} : { subsets }),
    });
    return;
  }
  const { subsets: _, ...rest } = existing;
  const next = withMetadata(subsets === undefined ? rest : { ...rest, subsets }, { labels });
  if (!deepEqual(next, existing)) context.write("/endpoints", next);
}

/** A load balancer gets its address after a delay. */
export function balanceLoad(context: ControllerContext, service: JsonObject): void {
  if (stringAt(service, "spec", "type") !== "LoadBalancer" || isDeleting(service)) return;
  const last = Number.parseInt(uidOf(service).slice(0, 4), 16) % 250;
  context.writeStatus(serviceResource, service, {
    status: { loadBalancer: { ingress: [{ ip: `198.51.100.${last + 1}`, ipMode: "VIP" }] } },
    manager: "cloud-controller-manager",
  });
}
