import { randomUUID } from "node:crypto";
import type { Cluster } from "#local/cluster/cluster.ts";
import { apiVersionOf, builtinKindsByResource } from "#local/cluster/kinds.ts";
import { withMetadata } from "#local/cluster/object-meta.ts";
import type { JsonObject } from "#shared/domain/json.ts";

const systemNamespaces = ["kube-system", "kube-public", "kube-node-lease", "default"];

/** Fills a new cluster with what every cluster has at its start. */
export function bootstrap(cluster: Cluster): void {
  for (const name of systemNamespaces) {
    put(cluster, "/namespaces", {
      metadata: {
        name,
        uid: name === "kube-system" ? cluster.options.uid : randomUUID(),
        labels: { "kubernetes.io/metadata.name": name },
      },
      spec: { finalizers: ["kubernetes"] },
      status: { phase: "Active" },
    });
  }
}

function put(cluster: Cluster, resource: string, object: JsonObject): void {
  const kind = builtinKindsByResource.get(resource);
  if (kind === undefined) throw new Error(`no built-in resource ${resource}`);
  const complete = { apiVersion: apiVersionOf(kind), kind: kind.kind, ...object };
  const stamped = withMetadata(complete, {
    creationTimestamp: cluster.now(),
    resourceVersion: String(cluster.store.nextRevision()),
  });
  cluster.store.put(resource, stamped);
}
