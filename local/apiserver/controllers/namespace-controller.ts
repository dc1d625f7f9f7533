import type { ControllerContext } from "#apiserver/controllers/controller-context.ts";
import { isDeleting } from "#apiserver/controllers/workload.ts";
import { isJsonObject, type JsonObject } from "#apiserver/json.ts";
import { stringAt } from "#apiserver/object-fields.ts";
import { nameOf } from "#apiserver/operations/object-meta.ts";

export const namespaceResource = "/namespaces";

const caDescription =
  "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";

/** Creates the default objects of a namespace. Empties a namespace that is being deleted, then removes it. */
export function reconcileNamespace(context: ControllerContext, namespace: JsonObject): void {
  if (isDeleting(namespace)) terminate(context, namespace);
  else furnish(context, nameOf(namespace));
}

function furnish(context: ControllerContext, namespace: string): void {
  context.create("/serviceaccounts", { metadata: { name: "default", namespace } });
  context.create("/configmaps", {
    metadata: { name: "kube-root-ca.crt", namespace, annotations: { "kubernetes.io/description": caDescription } },
    data: { "ca.crt": context.cluster.options.caCert },
  });
}

function terminate(context: ControllerContext, namespace: JsonObject): void {
  const { store } = context.cluster;
  const name = nameOf(namespace);
  for (const resource of store.resources()) {
    for (const object of store.list(resource, name)) if (!isDeleting(object)) context.remove(resource, object);
  }
  const left = store
    .resources()
    .flatMap((resource) => store.list(resource, name).map((object) => ({ resource, object })));
  if (left.length === 0) {
    context.write(namespaceResource, { ...namespace, spec: { finalizers: [] } });
    return;
  }
  context.writeStatus(namespaceResource, namespace, {
    status: { phase: "Terminating", conditions: conditionsOf(context, namespace, left) },
  });
}

interface Remaining {
  readonly resource: string;
  readonly object: JsonObject;
}

function conditionsOf(context: ControllerContext, namespace: JsonObject, left: readonly Remaining[]): JsonObject[] {
  const status = isJsonObject(namespace.status) ? namespace.status : {};
  const known = Array.isArray(status.conditions) ? status.conditions : [];
  function condition(
    type: string,
    value: "True" | "False",
    why: { readonly reason: string; readonly message: string },
  ): JsonObject {
    const before = known.find((each) => isJsonObject(each) && each.type === type && each.status === value);
    const lastTransitionTime = stringAt(before, "lastTransitionTime") ?? context.cluster.now();
    return { type, status: value, lastTransitionTime, ...why };
  }
  const finalizers = new Map<string, number>();
  for (const { object } of left) {
    const metadata = isJsonObject(object.metadata) ? object.metadata : {};
    for (const finalizer of Array.isArray(metadata.finalizers) ? metadata.finalizers : []) {
      finalizers.set(String(finalizer), (finalizers.get(String(finalizer)) ?? 0) + 1);
    }
  }
  const kinds = new Map<string, number>();
  for (const { resource } of left) {
    const [group = "", plural = ""] = resource.split("/");
    const text = group === "" ? `${plural}.` : `${plural}.${group}`;
    kinds.set(text, (kinds.get(text) ?? 0) + 1);
  }
  const remaining = [...kinds].map(([kind, count]) => `${kind} has ${count} resource instances`).join(", ");
  const held = [...finalizers].map(([finalizer, count]) => `${finalizer} in ${count} resource instances`).join(", ");
  return [
    condition("NamespaceDeletionDiscoveryFailure", "False", {
      reason: "ResourcesDiscovered",
      message: "All resources successfully discovered",
    }),
    condition("NamespaceDeletionGroupVersionParsingFailure", "False", {
      reason: "ParsedGroupVersions",
      message: "All legacy kube types successfully parsed",
    }),
    condition("NamespaceDeletionContentFailure", "False", {
      reason: "ContentDeleted",
      message: "All content successfully deleted, may be waiting on finalization",
    }),
    condition("NamespaceContentRemaining", "True", {
      reason: "SomeResourcesRemain",
      message: `Some resources are remaining: ${remaining}`,
    }),
    condition("NamespaceFinalizersRemaining", finalizers.size > 0 ? "True" : "False", {
      reason: finalizers.size > 0 ? "SomeFinalizersRemain" : "ContentHasNoFinalizers",
      message:
        finalizers.size > 0
          ? `Some content in the namespace has finalizers remaining: ${held}`
          : "All content-preserving finalizers finished",
    }),
  ];
}
