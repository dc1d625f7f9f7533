import type { Cluster } from "#apiserver/cluster.ts";
import { builtinKinds } from "#apiserver/kinds/builtin-kinds.ts";
import { apiVersionOf, resourceKey } from "#apiserver/kinds/kind.ts";
import { listAt, stringAt, valueAt } from "#apiserver/object-fields.ts";

export const apiServiceResource = resourceKey("apiregistration.k8s.io", "apiservices");

/** A version of an API group that another server serves. */
interface AggregatedApi {
  readonly group: string;
  readonly version: string;
  readonly isAvailable: boolean;
}

const ownApis = new Set(builtinKinds.map(apiVersionOf));

/** The aggregated APIs of a cluster: those of its APIServices and those that its faults declare. */
export function aggregatedApis(cluster: Cluster): readonly AggregatedApi[] {
  const announced = cluster.store.list(apiServiceResource).flatMap((apiService): AggregatedApi[] => {
    if (valueAt(apiService, "spec", "service") === undefined) return [];
    const group = stringAt(apiService, "spec", "group") ?? "";
    const version = stringAt(apiService, "spec", "version") ?? "";
    if (ownApis.has(apiVersionOf({ group, version }))) return [];
    const isAvailable = listAt(apiService, "status", "conditions").some(
      (condition) => stringAt(condition, "type") === "Available" && stringAt(condition, "status") === "True",
    );
    return [{ group, version, isAvailable }];
  });
  return [...announced, ...cluster.faults.unavailableApis().map((api) => ({ ...api, isAvailable: false }))];
}

/** Whether another server should serve this group and version, and does not answer. */
export function isUnavailable(cluster: Cluster, group: string, version: string): boolean {
  return aggregatedApis(cluster).some((api) => api.group === group && api.version === version && !api.isAvailable);
}
