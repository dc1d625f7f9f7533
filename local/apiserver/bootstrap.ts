import { randomUUID } from "node:crypto";
import { bootstrapPolicy } from "#apiserver/authorization/bootstrap-policy.ts";
import type { Cluster } from "#apiserver/cluster.ts";
import { objectKey } from "#apiserver/cluster-store.ts";
import type { JsonObject } from "#apiserver/json.ts";
import { builtinKindsByResource } from "#apiserver/kinds/builtin-kinds.ts";
import { apiVersionOf } from "#apiserver/kinds/kind.ts";
import { nameOf, withMetadata } from "#apiserver/operations/object-meta.ts";

const systemNamespaces = ["kube-system", "kube-public", "kube-node-lease", "default"];

/** Creates the objects that every new cluster has, unless they exist. */
export function bootstrap(cluster: Cluster): void {
  for (const name of systemNamespaces) {
    const uid = name === "kube-system" ? cluster.options.uid : randomUUID();
    putMissing(cluster, "/namespaces", {
      metadata: { name, uid, labels: { "kubernetes.io/metadata.name": name } },
      spec: { finalizers: ["kubernetes"] },
      status: { phase: "Active" },
    });
  }
  for (const [resource, object] of bootstrapPolicy) {
    putMissing(cluster, resource, withMetadata(object, { uid: randomUUID() }));
  }
}

function putMissing(cluster: Cluster, resource: string, object: JsonObject): void {
  const kind = builtinKindsByResource.get(resource);
  if (kind === undefined) throw new Error(`no built-in resource ${resource}`);
  if (cluster.store.get(resource, objectKey("", nameOf(object))) !== undefined) return;
  const complete = { apiVersion: apiVersionOf(kind), kind: kind.kind, ...object };
  const stamped = withMetadata(complete, {
    creationTimestamp: cluster.now(),
    resourceVersion: String(cluster.store.nextRevision()),
  });
  cluster.store.put(resource, stamped);
}
