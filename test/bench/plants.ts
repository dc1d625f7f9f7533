/** All kinds of drift, as listed in docs/benchmarks.md. Each plant makes one object drift. */
import { isJsonObject, type Json, type JsonObject, parseJson, stringifyJson } from "#shared/base/json.ts";
import { listAt, type ManifestObject, stringMapAt, valueAt } from "#shared/kube/kube-object.ts";
import { partOfLabel } from "#shared/kube/membership.ts";
import { until, whileRewriting } from "#test/bench/admission.ts";
import { applyRequest, type Ground } from "#test/bench/ground.ts";
import { pathOfObject } from "#test/bench/object-paths.ts";
import { definition } from "#test/bench/objects.ts";

export interface Plant {
  readonly name: string;
  /** The kinds of objects that it applies to. */
  readonly kinds: readonly string[];
  /** Set if only one object of the set can drift in this way. */
  readonly once?: true;
  plant(ground: Ground, object: ManifestObject): Promise<unknown>;
}

const named = ["ConfigMap", "Secret", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "Service", "Deployment"];

export const plants: readonly Plant[] = [
  {
    name: "another manager changes a value",
    kinds: ["ConfigMap"],
    plant: (ground, object) => merge(ground, object, { data: { mode: "theirs" } }),
  },
  {
    name: "a value is removed",
    kinds: ["ConfigMap"],
    plant: (ground, object) => merge(ground, object, { data: { mode: null } }),
  },
  {
    name: "a label is changed",
    kinds: named,
    plant: (ground, object) => merge(ground, object, { metadata: { labels: { "app.kubernetes.io/name": "theirs" } } }),
  },
  {
    name: "an annotation is changed",
    kinds: named,
    plant: (ground, object) =>
      merge(ground, object, { metadata: { annotations: { "bench.example.com/revision": "theirs" } } }),
  },
  {
    name: "a Deployment is scaled",
    kinds: ["Deployment"],
    plant: ({ cluster }, object) =>
      cluster.send({
        method: "PATCH",
        path: `${pathOfObject(object)}/scale`,
        contentType: "application/merge-patch+json",
        body: stringifyJson({ spec: { replicas: 3 } }),
      }),
  },
  {
    name: "the same manager applies other values",
    kinds: ["ConfigMap"],
    plant: ({ cluster, worker }, object) => {
      const labels = { ...stringMapAt(object, "metadata", "labels"), [partOfLabel]: worker.setId };
      const data = { ...stringMapAt(object, "data"), mode: "late" };
      return cluster.send(applyRequest({ ...object, metadata: { ...object.metadata, labels }, data }));
    },
  },
  {
    name: "a foreign PUT re-orders env",
    kinds: ["Deployment"],
    plant: (ground, object) => reorder(ground, object, reversedEnv),
  },
  {
    name: "a foreign PUT re-orders initContainers",
    kinds: ["Deployment"],
    plant: (ground, object) =>
      reorder(ground, object, (pod) => ({ ...pod, initContainers: listAt(pod, "initContainers").toReversed() })),
  },
  {
    name: "an admission policy rewrites an owned key",
    kinds: ["ConfigMap"],
    plant: (ground, object) =>
      whileRewriting(ground, object, () =>
        merge(ground, object, { metadata: { annotations: { "theirs.example.com/seen": "yes" } } }),
      ),
  },
  {
    name: "a value is changed and managedFields are written back",
    kinds: ["ConfigMap"],
    async plant(ground, object) {
      const before = await read(ground, object);
      await merge(ground, object, { data: { mode: "theirs" } });
      const value = valueAt(before, "metadata", "managedFields") ?? [];
      await ground.cluster.send({
        method: "PATCH",
        path: `${pathOfObject(object)}?fieldManager=theirs`,
        contentType: "application/json-patch+json",
        body: stringifyJson([{ op: "replace", path: "/metadata/managedFields", value }]),
      });
    },
  },
  {
    name: "a definition loses an owned field",
    kinds: ["Gauge"],
    once: true,
    async plant(ground, object) {
      await ground.cluster.send(applyRequest(definition("Gauge", ["size"])));
      // A real server needs a moment before it uses the new schema.
      await until(async () => valueAt(await read(ground, object), "spec", "extra") === undefined, "the new schema");
    },
  },
  {
    name: "an object is deleted",
    kinds: ["ConfigMap", "Secret", "ServiceAccount", "RoleBinding", "NetworkPolicy", "CronJob", "Widget"],
    plant: ({ cluster }, object) => cluster.send({ method: "DELETE", path: pathOfObject(object) }),
  },
  {
    name: "an object is deleted and made again by hand",
    kinds: ["ConfigMap", "Secret", "Role"],
    async plant({ cluster }, object) {
      const path = pathOfObject(object);
      await cluster.send({ method: "DELETE", path });
      await cluster.send({
        method: "POST",
        path: path.slice(0, path.lastIndexOf("/")),
        contentType: "application/json",
        body: stringifyJson(object),
      });
    },
  },
];

function merge({ cluster }: Ground, object: ManifestObject, patch: JsonObject): Promise<string> {
  return cluster.send({
    method: "PATCH",
    path: `${pathOfObject(object)}?fieldManager=theirs`,
    contentType: "application/merge-patch+json",
    body: stringifyJson(patch),
  });
}

async function read({ cluster }: Ground, object: ManifestObject): Promise<JsonObject> {
  const live = parseJson(await cluster.send({ method: "GET", path: pathOfObject(object) }));
  if (!isJsonObject(live)) throw new Error(`${object.kind} ${object.metadata.name} is no object`);
  return live;
}

async function reorder(
  ground: Ground,
  object: ManifestObject,
  change: (podSpec: JsonObject) => JsonObject,
): Promise<void> {
  const live = await read(ground, object);
  const podSpec = objectAt(live, "spec", "template", "spec");
  const template = { ...objectAt(live, "spec", "template"), spec: change(podSpec) };
  await ground.cluster.send({
    method: "PUT",
    path: `${pathOfObject(object)}?fieldManager=theirs`,
    contentType: "application/json",
    body: stringifyJson({ ...live, spec: { ...objectAt(live, "spec"), template } }),
  });
}

function reversedEnv(podSpec: JsonObject): JsonObject {
  const containers = listAt(podSpec, "containers").map((container) =>
    isJsonObject(container) ? { ...container, env: listAt(container, "env").toReversed() } : container,
  );
  return { ...podSpec, containers };
}

function objectAt(value: Json, ...path: readonly string[]): JsonObject {
  const found = valueAt(value, ...path);
  if (!isJsonObject(found)) throw new Error(`there is no object at ${path.join(".")}`);
  return found;
}
