import { crdResource } from "#apiserver/cluster.ts";
import type { Change } from "#apiserver/cluster-store.ts";
import type { ControllerContext } from "#apiserver/controllers/controller-context.ts";
import { isJsonObject, type Json, type JsonObject } from "#apiserver/json.ts";
import { listAt, stringAt, valueAt } from "#apiserver/object-fields.ts";
import { nameOf, withMetadata } from "#apiserver/operations/object-meta.ts";

/** A real server, too, starts to serve a definition only a moment after it has stored it. */
const establishAfterMs = 20;
const cleanup = "customresourcecleanup.apiextensions.k8s.io";

/**
 * Accepts the names of definitions and serves them. Deletes the objects of a deleted definition, then the definition
 * (apiextensions-apiserver).
 */
export function watchCrds(context: ControllerContext): (change: Change) => void {
  return (change) => {
    if (change.resource !== crdResource) return;
    const name = nameOf(change.object);
    if (change.type === "DELETED") context.cluster.stopServing(name);
    else reconcileLater(context, name);
  };
}

function reconcileLater(context: ControllerContext, name: string): void {
  const at = context.cluster.options.clock() + establishAfterMs;
  context.scheduler.at(`crd/${name}`, at, () => reconcile(context, name));
}

function reconcile(context: ControllerContext, name: string): void {
  const { cluster } = context;
  const crd = cluster.store.get(crdResource, `/${name}`);
  if (crd === undefined) return;
  if (valueAt(crd, "metadata", "deletionTimestamp") !== undefined) {
    finalize(context, crd);
    return;
  }
  const problem = nameConflict(context, crd);
  const status = statusOf(crd, { now: cluster.now(), problem });
  if (problem === undefined) cluster.serve(crd);
  context.writeStatus(crdResource, crd, { status, manager: "kube-apiserver" });
}

interface NameConflict {
  readonly reason: string;
  readonly message: string;
}

function nameConflict({ cluster }: ControllerContext, crd: JsonObject): NameConflict | undefined {
  const group = stringAt(crd, "spec", "group");
  const others = cluster.store
    .list(crdResource)
    .filter((other) => nameOf(other) !== nameOf(crd) && stringAt(other, "spec", "group") === group)
    .map((other) => valueAt(other, "status", "acceptedNames"));
  let found: NameConflict | undefined;
  for (const [key, reason] of [
    ["kind", "KindConflict"],
    ["listKind", "ListKindConflict"],
  ] as const) {
    const desired = stringAt(crd, "spec", "names", key) ?? "";
    const taken = others.some((names) => stringAt(names, key) === desired);
    if (taken) found = { reason, message: `${JSON.stringify(desired)} is already in use` };
  }
  return found;
}

function statusOf(
  crd: JsonObject,
  { now, problem }: { readonly now: string; readonly problem: NameConflict | undefined },
): JsonObject {
  const names = valueAt(crd, "spec", "names") ?? {};
  const known = listAt(crd, "status", "conditions");
  function condition(type: string, status: "True" | "False", why: NameConflict): JsonObject {
    const before = known.find((each) => isJsonObject(each) && each.type === type && each.status === status);
    return { type, status, lastTransitionTime: stringAt(before, "lastTransitionTime") ?? now, ...why };
  }
  const accepted = { reason: "NoConflicts", message: "no conflicts found" };
  const established = { reason: "InitialNamesAccepted", message: "the initial names have been accepted" };
  const refused = { reason: "NotAccepted", message: "not all names are accepted" };
  const conditions =
    problem === undefined
      ? [condition("NamesAccepted", "True", accepted), condition("Established", "True", established)]
      : [condition("NamesAccepted", "False", problem), condition("Established", "False", refused)];
  const storedVersions = valueAt(crd, "status", "storedVersions") ?? null;
  return { conditions, acceptedNames: acceptedNames(names, problem), storedVersions };
}

function acceptedNames(names: Json, problem: NameConflict | undefined): JsonObject {
  if (!isJsonObject(names)) return { plural: "", kind: "" };
  if (problem === undefined) return names;
  const { listKind: _listKind, kind: _kind, ...accepted } = names;
  return { ...accepted, kind: "" };
}

/** Deletes the objects of a definition, then the definition. */
function finalize(context: ControllerContext, crd: JsonObject): void {
  const { cluster } = context;
  const resource = `${stringAt(crd, "spec", "group")}/${stringAt(crd, "spec", "names", "plural")}`;
  for (const object of cluster.store.list(resource)) context.remove(resource, object);
  if (cluster.store.list(resource).length > 0) {
    reportProgress(context, crd);
    reconcileLater(context, nameOf(crd));
    return;
  }
  const finalizers = listAt(crd, "metadata", "finalizers").filter((each) => each !== cleanup);
  context.write(crdResource, withMetadata(crd, { finalizers: finalizers.length === 0 ? undefined : finalizers }));
}

/** Reports in the condition Terminating that finalizers still keep some of the definition's objects. */
function reportProgress(context: ControllerContext, crd: JsonObject): void {
  const why = { reason: "InstanceDeletionInProgress", message: "CustomResource deletion is in progress" };
  const conditions = listAt(crd, "status", "conditions").map((each) =>
    isJsonObject(each) && each.type === "Terminating" ? { ...each, ...why } : each,
  );
  const status = { ...(isJsonObject(crd.status) ? crd.status : {}), conditions };
  context.writeStatus(crdResource, crd, { status, manager: "kube-apiserver" });
}
