import { keyOf } from "#apiserver/cluster-store.ts";
import type { ControllerContext } from "#apiserver/controllers/controller-context.ts";
import { podResource, readySince } from "#apiserver/controllers/pod-controller.ts";
import {
  countPods,
  createPod,
  isDeleting,
  numberAt,
  ownerReference,
  podsOf,
  replicasOf,
  specOf,
  statusOf,
  templateHash,
  templateOf,
} from "#apiserver/controllers/workload.ts";
import { isJsonObject, type JsonObject } from "#apiserver/json.ts";
import { labelsOf, listAt, stringAt, valueAt } from "#apiserver/object-fields.ts";
import { nameOf } from "#apiserver/operations/object-meta.ts";

export const statefulSetResource = "apps/statefulsets";
const revisionLabel = "controller-revision-hash";

/** Keeps the Pods `name-0` to `name-(n-1)`. Creates them in order, and replaces them one by one from the last. */
export function reconcileStatefulSet(context: ControllerContext, set: JsonObject): void {
  if (isDeleting(set)) return;
  const revision = `${nameOf(set)}-${templateHash(specOf(set).template)}`;
  rememberRevision(context, set, revision);
  const pods = new Map(podsOf(context, set).map((pod) => [nameOf(pod), pod]));
  const replicas = replicasOf(set);
  const names = Array.from({ length: replicas }, (_, index) => `${nameOf(set)}-${index}`);
  const parallel = specOf(set).podManagementPolicy === "Parallel";
  for (const [name, pod] of pods) if (!names.includes(name)) context.remove(podResource, pod);
  for (const [index, name] of names.entries()) {
    const pod = pods.get(name);
    if (pod === undefined) startPod(context, set, { name, index, revision });
    if ((pod === undefined || readySince(pod) === undefined) && !parallel) break;
  }
  replaceOutdated(context, set, { names, pods, revision });
  writeStatus(context, set, revision);
}

function rememberRevision(context: ControllerContext, set: JsonObject, name: string): void {
  const known = context.owners.dependents(stringAt(set, "metadata", "uid") ?? "", "apps/controllerrevisions");
  if (known.some(({ object }) => nameOf(object) === name)) return;
  context.create("apps/controllerrevisions", {
    metadata: {
      name,
      namespace: stringAt(set, "metadata", "namespace"),
      labels: { ...labelsOf(templateOf(set)), "controller.kubernetes.io/hash": name.slice(name.lastIndexOf("-") + 1) },
      ownerReferences: [ownerReference(set)],
    },
    data: { spec: { template: templateOf(set) } },
    revision: known.length + 1,
  });
}

interface PodSlot {
  readonly name: string;
  readonly index: number;
  readonly revision: string;
}

function startPod(context: ControllerContext, set: JsonObject, { name, index, revision }: PodSlot): void {
  const namespace = stringAt(set, "metadata", "namespace");
  const template = templateOf(set);
  const claims = listAt(set, "spec", "volumeClaimTemplates").filter(isJsonObject);
  for (const claim of claims) {
    const labels = valueAt(set, "spec", "selector", "matchLabels");
    const metadata = { name: `${nameOf(claim)}-${name}`, namespace, ...(isJsonObject(labels) ? { labels } : {}) };
    context.create("/persistentvolumeclaims", { metadata, spec: claim.spec });
  }
  const volumes = claims.map((claim) => ({
    name: nameOf(claim),
    persistentVolumeClaim: { claimName: `${nameOf(claim)}-${name}` },
  }));
  const spec = isJsonObject(template.spec) ? template.spec : {};
  const complete = {
    ...spec,
    volumes: [...volumes, ...listAt(spec, "volumes")],
    hostname: name,
    subdomain: specOf(set).serviceName,
  };
  const labels = {
    [revisionLabel]: revision,
    "statefulset.kubernetes.io/pod-name": name,
    "apps.kubernetes.io/pod-index": String(index),
  };
  createPod(context, set, { name, template: { ...template, spec: complete }, labels });
}

function replaceOutdated(
  context: ControllerContext,
  set: JsonObject,
  how: { readonly names: readonly string[]; readonly pods: ReadonlyMap<string, JsonObject>; readonly revision: string },
): void {
  if (stringAt(set, "spec", "updateStrategy", "type") === "OnDelete") return;
  const partition = numberAt(set, "spec", "updateStrategy", "rollingUpdate", "partition");
  for (const name of how.names.slice(partition).reverse()) {
    const pod = how.pods.get(name);
    if (pod === undefined) return;
    if (labelsOf(pod)[revisionLabel] !== how.revision) {
      context.remove(podResource, pod);
      return;
    }
    if (readySince(pod) === undefined) return;
  }
}

function writeStatus(context: ControllerContext, set: JsonObject, updateRevision: string): void {
  const pods = podsOf(context, set);
  const counts = countPods(pods, {
    minReadySeconds: numberAt(set, "spec", "minReadySeconds"),
    nowMs: context.cluster.options.clock(),
  });
  const updated = pods.filter((pod) => labelsOf(pod)[revisionLabel] === updateRevision);
  const before = statusOf(set);
  const replicas = replicasOf(set);
  const done = updated.length === replicas && counts.total === replicas && counts.ready === replicas;
  const known =
    typeof before.currentRevision === "string" && before.currentRevision !== ""
      ? before.currentRevision
      : updateRevision;
  const currentRevision = done ? updateRevision : known;
  const current = pods.filter((pod) => labelsOf(pod)[revisionLabel] === currentRevision);
  const live = context.cluster.store.get(statefulSetResource, keyOf(set)) ?? set;
  context.writeStatus(statefulSetResource, live, {
    status: {
      observedGeneration: numberAt(set, "metadata", "generation"),
      replicas: counts.total,
      readyReplicas: counts.ready,
      currentReplicas: current.length,
      updatedReplicas: updated.length,
      currentRevision,
      updateRevision,
      collisionCount: 0,
      availableReplicas: counts.available,
    },
  });
}
