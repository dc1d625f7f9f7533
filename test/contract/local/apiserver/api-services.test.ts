import { describe, expect, test, vi } from "vitest";
import type { JsonObject } from "#shared/base/json.ts";
import { listAt } from "#shared/kube/kube-object.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { clusterFixture } from "#test/support/cluster-fixture.ts";
import { forAllTests } from "#test/support/for-tests.ts";

const path = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io";
const services = "/api/v1/namespaces/default/services/adapter";
const slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/adapter-1";

const apiService: JsonObject = {
  apiVersion: "apiregistration.k8s.io/v1",
  kind: "APIService",
  metadata: { name: "v1beta1.metrics.k8s.io" },
  spec: {
    ...{ group: "metrics.k8s.io", version: "v1beta1", groupPriorityMinimum: 100, versionPriority: 100 },
    ...{ insecureSkipTLSVerify: true, service: { name: "adapter", namespace: "default" } },
  },
};

function service(port: number): JsonObject {
  const ports = [{ name: "https", port, targetPort: 6443 }];
  return { apiVersion: "v1", kind: "Service", metadata: { name: "adapter" }, spec: { ports } };
}

const slice: JsonObject = {
  apiVersion: "discovery.k8s.io/v1",
  kind: "EndpointSlice",
  metadata: { name: "adapter-1", labels: { "kubernetes.io/service-name": "adapter" } },
  ...{ addressType: "IPv4", endpoints: [], ports: [{ name: "https", port: 6443, protocol: "TCP" }] },
};

/** The status of an APIService while its server is set up step by step, until only an endpoint is missing. */
describe.each(clusterTargets)("an APIService on $name", ({ start }) => {
  const cluster = forAllTests(async () => clusterFixture(await start()));

  function apply(at: string, body: JsonObject): Promise<JsonObject> {
    return cluster.raw("PATCH", `${at}?fieldManager=test&force=true`, { as: "apply-patch", body });
  }

  async function isAway(reason: string, message: string): Promise<void> {
    const read = async () => listAt(await cluster.raw("GET", path), "status", "conditions");
    const condition = { type: "Available", status: "False", lastTransitionTime: expect.any(String), reason, message };
    await vi.waitFor(async () => expect(await read()).toEqual([condition]), { timeout: 30_000, interval: 100 });
  }

  test("an APIService reports what its server lacks, and its API is announced and answers 503", async () => {
    expect(await apply(path, apiService)).toMatchObject({ spec: { service: { port: 443 } }, status: {} });
    await isAway("ServiceNotFound", 'service/adapter in "default" is not present');
    const version = { groupVersion: "metrics.k8s.io/v1beta1", version: "v1beta1" };
    await vi.waitFor(
      async () => {
        expect(listAt(await cluster.raw("GET", "/apis"), "groups")).toContainEqual({
          name: "metrics.k8s.io",
          versions: [version],
          preferredVersion: version,
        });
        expect(await cluster.statusOf("/apis/metrics.k8s.io/v1beta1/nodes")).toBe(503);
      },
      { timeout: 30_000, interval: 100 },
    );
    await apply(services, service(8443));
    await isAway("ServicePortError", 'service/adapter in "default" is not listening on port 443');
    await apply(services, service(443));
    await isAway("EndpointsNotFound", 'cannot find endpointslices for service/adapter in "default"');
    await apply(slices, slice);
    const missing = 'endpointslices for service/adapter in "default" have no addresses with port name "https"';
    await isAway("MissingEndpoints", missing);
    await cluster.raw("DELETE", path);
    await vi.waitFor(async () => expect(await cluster.statusOf("/apis/metrics.k8s.io")).toBe(404), {
      timeout: 30_000,
      interval: 100,
    });
  }, 150_000);
});
