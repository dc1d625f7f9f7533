import { askWebhooks } from "#apiserver/admission.ts";
import type { Cluster } from "#apiserver/cluster.ts";
import { objectKey } from "#apiserver/cluster-store.ts";
import { deepEqual } from "#apiserver/deep-equal.ts";
import { isJsonObject, type Json, type JsonObject } from "#apiserver/json.ts";
import { apiVersionOf, type Kind } from "#apiserver/kinds/kind.ts";
import { listAt, stringAt, valueAt } from "#apiserver/object-fields.ts";
import { metadataOf, nameOf, resourceSubject, withMetadata } from "#apiserver/operations/object-meta.ts";
import { selection, withoutType } from "#apiserver/operations/read-operations.ts";
import { parseApplyBody } from "#apiserver/operations/request-body.ts";
import { resourceOf } from "#apiserver/operations/write-operations.ts";
import { dryRunErrors } from "#apiserver/operations/write-request.ts";
import {
  badRequest,
  conflict,
  type FieldError,
  fieldErrors,
  forbidden,
  invalid,
  notFound,
} from "#apiserver/status-error.ts";

interface DeleteTarget {
  readonly cluster: Cluster;
  readonly kind: Kind;
}

export interface DeleteRequest extends DeleteTarget {
  readonly namespace: string;
  readonly name: string;
  readonly query: URLSearchParams;
  readonly body: string;
  readonly warnings: string[];
}

type Propagation = "Background" | "Foreground" | "Orphan";

export interface DeleteOptions {
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly propagation?: Propagation;
  readonly gracePeriodSeconds?: number;
  readonly dryRun: boolean;
}

const policies: readonly string[] = ["Foreground", "Background", "Orphan", "nil"];

/** Reads DeleteOptions from the body, or from the query if the body is empty. @throws StatusError 400 or 422. */
function readDeleteOptions(query: URLSearchParams, text: string): DeleteOptions {
  const body: JsonObject = text.trim() === "" ? fromQuery(query) : parseApplyBody(text, "Ignore").value;
  if (typeof body.kind === "string" && body.kind !== "DeleteOptions") {
    throw badRequest(
      `no kind ${JSON.stringify(body.kind)} is registered for version ${JSON.stringify(body.apiVersion ?? "")} in scheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"`,
    );
  }
  const policy = body.propagationPolicy;
  const orphan = body.orphanDependents;
  const errors: FieldError[] = [...dryRunErrors(query)];
  if (policy !== undefined && orphan !== undefined) {
    errors.push(
      fieldErrors.invalid("propagationPolicy", policy, "orphanDependents and deletionPropagation cannot be both set"),
    );
  } else if (policy !== undefined && !policies.includes(String(policy))) {
    errors.push(fieldErrors.unsupported("propagationPolicy", policy, policies));
  }
  if (errors.length > 0) throw invalid({ group: "meta.k8s.io", kind: "DeleteOptions", name: "" }, errors);
  const uid = stringAt(body, "preconditions", "uid");
  const resourceVersion = stringAt(body, "preconditions", "resourceVersion");
  const grace = body.gracePeriodSeconds;
  const propagation = propagationOf(policy, orphan);
  const dryRun = query.getAll("dryRun").includes("All") || listAt(body, "dryRun").includes("All");
  return {
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
    ...(propagation === undefined ? {} : { propagation }),
    ...(typeof grace === "number" ? { gracePeriodSeconds: grace } : {}),
    dryRun,
  };
}

function fromQuery(query: URLSearchParams): JsonObject {
  const policy = query.get("propagationPolicy");
  const orphan = query.get("orphanDependents");
  const grace = query.get("gracePeriodSeconds");
  return {
    ...(policy === null ? {} : { propagationPolicy: policy }),
    ...(orphan === null ? {} : { orphanDependents: orphan === "true" }),
    ...(grace === null ? {} : { gracePeriodSeconds: Number(grace) }),
  };
}

function propagationOf(policy: Json | undefined, orphan: Json | undefined): Propagation | undefined {
  if (policy === "Background" || policy === "Foreground" || policy === "Orphan") return policy;
  if (orphan === undefined) return undefined;
  return orphan === true ? "Orphan" : "Background";
}

const protectedNamespaces = ["default", "kube-system", "kube-public"];

function isNamespace(kind: Kind): boolean {
  return kind.group === "" && kind.plural === "namespaces";
}

/**
 * DELETE of one object. Answers with the object if it still exists or its kind requires that, otherwise with a Status.
 */
export function deleteObject(request: DeleteRequest): JsonObject {
  const { cluster, kind, namespace, name } = request;
  const options = readDeleteOptions(request.query, request.body);
  const live = cluster.store.get(resourceOf(kind), objectKey(namespace, name));
  if (isNamespace(kind) && protectedNamespaces.includes(name)) {
    throw forbidden(resourceSubject(kind, name), "this namespace may not be deleted");
  }
  if (live === undefined) throw notFound(resourceSubject(kind, name));
  checkPreconditions(kind, live, options);
  admitDelete(request, options);
  if (isOrphaningJob(kind, options)) {
    request.warnings.push(
      "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning",
    );
  }
  return deleteStored(request, live, options);
}

function admitDelete({ cluster, kind, namespace }: DeleteRequest, { dryRun }: DeleteOptions): void {
  askWebhooks({ webhooks: cluster.faults.webhooks, operation: "DELETE", kind, namespace, subresource: "", dryRun });
}

function isOrphaningJob(kind: Kind, options: DeleteOptions): boolean {
  return kind.group === "batch" && kind.plural === "jobs" && options.propagation === undefined;
}

function checkPreconditions(kind: Kind, live: JsonObject, options: DeleteOptions): void {
  const name = nameOf(live);
  const uid = stringAt(live, "metadata", "uid") ?? "";
  const version = stringAt(live, "metadata", "resourceVersion") ?? "";
  if (options.uid !== undefined && options.uid !== uid) {
    if (isNamespace(kind)) {
      throw conflict(
        resourceSubject(kind, name),
        `Precondition failed: UID in precondition: ${options.uid}, UID in object meta: ${uid}`,
      );
    }
    const why = `the UID in the precondition (${options.uid}) does not match the UID in record (${uid}). The object might have been deleted and then recreated`;
    throw conflict({ group: kind.group, kind: kind.kind, name }, why);
  }
  if (options.resourceVersion !== undefined && options.resourceVersion !== version) {
    const why = `the ResourceVersion in the precondition (${options.resourceVersion}) does not match the ResourceVersion in record (${version}). The object might have been modified`;
    throw conflict({ group: kind.group, kind: kind.kind, name }, why);
  }
}

const cleanup = "customresourcecleanup.apiextensions.k8s.io";

function finalizersFor(kind: Kind, live: JsonObject, options: DeleteOptions): Json[] {
  const kept = listAt(live, "metadata", "finalizers").filter(
    (each) => each !== "orphan" && each !== "foregroundDeletion",
  );
  const unchanged = [...listAt(live, "metadata", "finalizers")];
  if (kind.plural === "customresourcedefinitions" && !unchanged.includes(cleanup)) return [...unchanged, cleanup];
  if (options.propagation === "Foreground") return [...kept, "foregroundDeletion"];
  if (options.propagation === "Orphan" || isOrphaningJob(kind, options)) return [...kept, "orphan"];
  return options.propagation === "Background" ? kept : unchanged;
}

function graceOf(request: DeleteTarget, live: JsonObject, options: DeleteOptions): number {
  if (request.kind.group !== "" || request.kind.plural !== "pods") return 0;
  if ((stringAt(live, "spec", "nodeName") ?? "") === "") return 0;
  if (["Succeeded", "Failed"].includes(stringAt(live, "status", "phase") ?? "")) return 0;
  const own = valueAt(live, "spec", "terminationGracePeriodSeconds");
  return Math.max(0, options.gracePeriodSeconds ?? (typeof own === "number" ? own : 30));
}

/** Removes a stored object. If finalizers, a grace period or content keep it, marks it as being deleted instead. */
export function deleteStored(request: DeleteTarget, live: JsonObject, options: DeleteOptions): JsonObject {
  const { cluster, kind } = request;
  const finalizers = finalizersFor(kind, live, options);
  const grace = graceOf(request, live, options);
  const metadata = metadataOf(live);
  const stays = finalizers.length > 0 || grace > 0 || isNamespace(kind);
  if (!stays) return finish(request, live, options);
  const before = metadata.deletionGracePeriodSeconds;
  const shorter = typeof before === "number" && grace < before;
  const recorded = deepEqual(finalizers, listAt(live, "metadata", "finalizers"));
  if (metadata.deletionTimestamp !== undefined && !shorter && recorded) return live;
  const generation = metadata.generation;
  const marked = withMetadata(live, {
    deletionTimestamp: metadata.deletionTimestamp ?? deadline(cluster, grace),
    deletionGracePeriodSeconds: isNamespace(kind) ? undefined : grace,
    finalizers: finalizers.length > 0 ? finalizers : undefined,
    generation:
      typeof generation === "number" && metadata.deletionTimestamp === undefined ? generation + 1 : generation,
  });
  const next = withEndingStatus(kind, marked, cluster.now());
  if (options.dryRun) return next;
  const stored = withMetadata(next, { resourceVersion: String(cluster.store.nextRevision()) });
  cluster.store.put(resourceOf(kind), stored);
  return stored;
}

/** Sets the status of a namespace or definition that the server must empty before it removes it. */
function withEndingStatus(kind: Kind, object: JsonObject, now: string): JsonObject {
  const status = isJsonObject(object.status) ? object.status : {};
  if (isNamespace(kind)) return { ...object, status: { ...status, phase: "Terminating" } };
  if (kind.plural !== "customresourcedefinitions") return object;
  const others = listAt(status, "conditions").filter((each) => stringAt(each, "type") !== "Terminating");
  const condition = {
    ...{ type: "Terminating", status: "True", lastTransitionTime: now, reason: "InstanceDeletionPending" },
    message: "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
  };
  return { ...object, status: { ...status, conditions: [...others, condition] } };
}

function deadline(cluster: Cluster, graceSeconds: number): string {
  const at = cluster.options.clock() + graceSeconds * 1_000;
  return `${new Date(at).toISOString().slice(0, 19)}Z`;
}

function finish(request: DeleteTarget, live: JsonObject, options: DeleteOptions): JsonObject {
  const { cluster, kind } = request;
  const marks = request.kind.plural === "pods" && kind.group === "";
  const generation = valueAt(live, "metadata", "generation");
  const deleting = valueAt(live, "metadata", "deletionTimestamp") !== undefined;
  const last = withMetadata(live, {
    resourceVersion: String(cluster.store.nextRevision()),
    ...(marks ? { deletionGracePeriodSeconds: 0 } : {}),
    ...(marks && !deleting ? { deletionTimestamp: cluster.now(), generation: Number(generation ?? 0) + 1 } : {}),
  });
  if (!options.dryRun) cluster.store.remove(resourceOf(kind), last);
  if (kind.deleteAnswersObject) return options.dryRun ? live : last;
  return {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Success",
    details: {
      name: nameOf(live),
      ...(kind.group === "" ? {} : { group: kind.group }),
      kind: kind.plural,
      uid: stringAt(live, "metadata", "uid") ?? "",
    },
  };
}

/** DELETE of a collection. Deletes every selected object like a single DELETE. */
export function deleteCollection(request: DeleteRequest): JsonObject {
  const { cluster, kind, query } = request;
  const options = readDeleteOptions(query, request.body);
  const selected = selection(kind, query);
  const objects = cluster.store
    .list(resourceOf(kind), kind.namespaced ? request.namespace : undefined)
    .filter(selected);
  if (objects.length > 0) admitDelete(request, options);
  for (const object of objects) deleteStored(request, object, options);
  const metadata = { resourceVersion: String(cluster.store.revision) };
  const items = kind.custom === undefined ? objects.map(withoutType) : objects;
  return { kind: kind.listKind, apiVersion: apiVersionOf(kind), metadata, items };
}
