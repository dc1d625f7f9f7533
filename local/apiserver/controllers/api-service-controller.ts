import { apiServiceResource } from "#apiserver/aggregated-apis.ts";
import { type Change, keyOf, objectKey } from "#apiserver/cluster-store.ts";
import type { ControllerContext } from "#apiserver/controllers/controller-context.ts";
import { serviceResource, sliceResource } from "#apiserver/controllers/endpoints-controller.ts";
import { enqueue } from "#apiserver/controllers/workload.ts";
import type { Json, JsonObject } from "#apiserver/json.ts";
import { labelsOf, listAt, stringAt, valueAt } from "#apiserver/object-fields.ts";

interface Verdict {
  readonly status: "True" | "False";
  readonly reason: string;
  readonly message: string;
}

/**
 * Sets the condition Available of each APIService (kube-aggregator, remote_available_controller). No process runs
 * behind a Pod here, so a ready endpoint counts as a server that answers.
 */
export function watchApiServices(context: ControllerContext): (change: Change) => void {
  return ({ resource, object, type }) => {
    if (resource === apiServiceResource && type !== "DELETED") checkLater(context, object);
    const service = serviceBehind(resource, object);
    if (service === undefined) return;
    for (const apiService of context.cluster.store.list(apiServiceResource)) {
      if (serviceKey(apiService) === service) checkLater(context, apiService);
    }
  };
}

function checkLater(context: ControllerContext, apiService: JsonObject): void {
  if (serviceKey(apiService) === undefined) return;
  const due = { resource: apiServiceResource, key: keyOf(apiService) };
  enqueue(context, due, (live) => check(context, live));
}

/** The store key of the Service that a change affects, if any. */
function serviceBehind(resource: string, object: JsonObject): string | undefined {
  if (resource === serviceResource) return keyOf(object);
  const name = resource === sliceResource ? labelsOf(object)["kubernetes.io/service-name"] : undefined;
  return name === undefined ? undefined : objectKey(stringAt(object, "metadata", "namespace") ?? "", name);
}

/** The store key of an APIService's Service. Undefined where kube-apiserver itself serves the API. */
function serviceKey(apiService: JsonObject): string | undefined {
  const name = stringAt(apiService, "spec", "service", "name");
  return name === undefined ? undefined : objectKey(stringAt(apiService, "spec", "service", "namespace") ?? "", name);
}

function check(context: ControllerContext, apiService: JsonObject): void {
  const verdict = judge(context, apiService);
  const [before] = listAt(apiService, "status", "conditions");
  const since = stringAt(before, "status") === verdict.status ? stringAt(before, "lastTransitionTime") : undefined;
  const { status, ...why } = verdict;
  const condition = { type: "Available", status, lastTransitionTime: since ?? context.cluster.now(), ...why };
  context.writeStatus(apiServiceResource, apiService, {
    status: { conditions: [condition] },
    manager: "kube-apiserver",
  });
}

function judge({ cluster }: ControllerContext, apiService: JsonObject): Verdict {
  const key = serviceKey(apiService) ?? "";
  const service = cluster.store.get(serviceResource, key);
  const namespace = stringAt(apiService, "spec", "service", "namespace") ?? "";
  const named = `service/${stringAt(apiService, "spec", "service", "name")} in ${JSON.stringify(namespace)}`;
  const away = (reason: string, message: string): Verdict => ({ status: "False", reason, message });
  if (service === undefined) return away("ServiceNotFound", `${named} is not present`);
  const passed: Verdict = { status: "True", reason: "Passed", message: "all checks passed" };
  if (stringAt(service, "spec", "type") !== "ClusterIP") return passed;
  const number = valueAt(apiService, "spec", "service", "port");
  const port = listAt(service, "spec", "ports").find((each) => valueAt(each, "port") === number);
  if (port === undefined) return away("ServicePortError", `${named} is not listening on port ${String(number)}`);
  const slices = cluster.store
    .list(sliceResource, namespace)
    .filter((slice) => serviceBehind(sliceResource, slice) === keyOf(service));
  if (slices.length === 0) return away("EndpointsNotFound", `cannot find endpointslices for ${named}`);
  const portName = stringAt(port, "name") ?? "";
  if (slices.some((slice) => hasReadyEndpoint(slice, portName))) return passed;
  const detail = `endpointslices for ${named} have no addresses with port name ${JSON.stringify(portName)}`;
  return away("MissingEndpoints", detail);
}

function hasReadyEndpoint(slice: JsonObject, portName: string): boolean {
  const isReady = (endpoint: Json) => valueAt(endpoint, "conditions", "ready") !== false;
  return (
    listAt(slice, "ports").some((port) => (stringAt(port, "name") ?? "") === portName) &&
    listAt(slice, "endpoints").some((endpoint) => isReady(endpoint) && listAt(endpoint, "addresses").length > 0)
  );
}
