import { keyOf } from "#apiserver/cluster-store.ts";
import type { ControllerContext } from "#apiserver/controllers/controller-context.ts";
import { uidOf } from "#apiserver/controllers/owner-index.ts";
import { replicaSetResource } from "#apiserver/controllers/replica-set-controller.ts";
import {
  conditionOf,
  isDeleting,
  numberAt,
  ownerReference,
  replicasOf,
  specOf,
  statusOf,
  templateHash,
  templateOf,
} from "#apiserver/controllers/workload.ts";
import { deepEqual } from "#apiserver/deep-equal.ts";
import { isJsonObject, type Json, type JsonObject } from "#apiserver/json.ts";
import { annotationsOf, stringAt, valueAt } from "#apiserver/object-fields.ts";
import { nameOf, withMetadata } from "#apiserver/operations/object-meta.ts";

export const deploymentResource = "apps/deployments";
const revisionAnnotation = "deployment.kubernetes.io/revision";
const desiredAnnotation = "deployment.kubernetes.io/desired-replicas";
const maxAnnotation = "deployment.kubernetes.io/max-replicas";
const hashLabel = "pod-template-hash";

/** Rolls out a Deployment through its ReplicaSets and reports progress in its status (pkg/controller/deployment). */
export function reconcileDeployment(context: ControllerContext, deployment: JsonObject): void {
  if (isDeleting(deployment)) return;
  const sets = context.owners.dependents(uidOf(deployment), replicaSetResource).map(({ object }) => object);
  const current = sets.find((set) => sameTemplate(set, deployment));
  const paused = specOf(deployment).paused === true;
  if (!paused) {
    const newest = current ?? createReplicaSet(context, deployment, sets);
    const old = sets.filter((set) => uidOf(set) !== uidOf(newest));
    setRevision(context, deployment, { newest, old });
    roll(context, deployment, { newest: fresh(context, newest), old: old.map((set) => fresh(context, set)) });
    dropHistory(context, deployment, old);
  }
  updateStatus(context, deployment);
}

function fresh(context: ControllerContext, set: JsonObject): JsonObject {
  return context.cluster.store.get(replicaSetResource, keyOf(set)) ?? set;
}

function withoutHash(template: JsonObject): JsonObject {
  const labels = valueAt(template, "metadata", "labels");
  if (!isJsonObject(labels)) return template;
  const { [hashLabel]: _, ...rest } = labels;
  return withMetadata(template, { labels: rest });
}

function sameTemplate(set: JsonObject, deployment: JsonObject): boolean {
  return deepEqual(withoutHash(templateOf(set)), withoutHash(templateOf(deployment)));
}

function revisionOf(set: JsonObject): number {
  return Number(annotationsOf(set)[revisionAnnotation] ?? 0);
}

interface Limits {
  readonly replicas: number;
  readonly surge: number;
  readonly unavailable: number;
}

function resolvePercent(value: Json | undefined, of: number, round: (value: number) => number): number {
  if (typeof value === "number") return value;
  return round((Number.parseInt(String(value ?? "0"), 10) / 100) * of);
}

/**
 * maxSurge rounds up and maxUnavailable rounds down. With both at zero no rollout could proceed, so one Pod may be
 * unavailable.
 */
function limitsOf(deployment: JsonObject): Limits {
  const replicas = replicasOf(deployment);
  if (isRecreate(deployment)) return { replicas, surge: 0, unavailable: replicas };
  const rolling = valueAt(deployment, "spec", "strategy", "rollingUpdate");
  const surge = resolvePercent(valueAt(rolling, "maxSurge"), replicas, Math.ceil);
  const unavailable = resolvePercent(valueAt(rolling, "maxUnavailable"), replicas, Math.floor);
  return { replicas, surge, unavailable: surge === 0 && unavailable === 0 ? 1 : Math.min(unavailable, replicas) };
}

function isRecreate(deployment: JsonObject): boolean {
  return stringAt(deployment, "spec", "strategy", "type") === "Recreate";
}

function annotations(limits: Limits, revision: number): JsonObject {
  return {
    [desiredAnnotation]: String(limits.replicas),
    [maxAnnotation]: String(limits.replicas + limits.surge),
    [revisionAnnotation]: String(revision),
  };
}

function createReplicaSet(context: ControllerContext, deployment: JsonObject, sets: readonly JsonObject[]): JsonObject {
  const template = templateOf(deployment);
  const hash = templateHash(template);
  const limits = limitsOf(deployment);
  const labels = {
    ...(isJsonObject(valueAt(template, "metadata", "labels"))
      ? (valueAt(template, "metadata", "labels") as JsonObject)
      : {}),
    [hashLabel]: hash,
  };
  const selector = specOf(deployment).selector;
  const given = isJsonObject(selector) ? selector : {};
  const total = sets.reduce((sum, set) => sum + replicasOf(set), 0);
  const room = Math.max(0, limits.replicas + limits.surge - total);
  const replicas = isRecreate(deployment) && total > 0 ? 0 : Math.min(limits.replicas, room);
  return context.create(replicaSetResource, {
    metadata: {
      name: `${nameOf(deployment)}-${hash}`,
      namespace: stringAt(deployment, "metadata", "namespace"),
      labels,
      annotations: annotations(limits, Math.max(0, ...sets.map(revisionOf)) + 1),
      ownerReferences: [ownerReference(deployment)],
    },
    spec: {
      replicas,
      ...(specOf(deployment).minReadySeconds === undefined
        ? {}
        : { minReadySeconds: specOf(deployment).minReadySeconds }),
      selector: {
        ...given,
        matchLabels: { ...(isJsonObject(given.matchLabels) ? given.matchLabels : {}), [hashLabel]: hash },
      },
      template: withMetadata(template, { labels }),
    },
    status: { replicas: 0 },
  });
}

interface Sets {
  readonly newest: JsonObject;
  readonly old: readonly JsonObject[];
}

function setRevision(context: ControllerContext, deployment: JsonObject, { newest, old }: Sets): void {
  const highest = Math.max(0, ...old.map(revisionOf));
  const revision = revisionOf(newest) > highest ? revisionOf(newest) : highest + 1;
  const merged = { ...annotationsOf(newest), ...annotations(limitsOf(deployment), revision) };
  if (!deepEqual(annotationsOf(newest), merged))
    context.write(replicaSetResource, withMetadata(fresh(context, newest), { annotations: merged }));
}

function scaleSet(context: ControllerContext, set: JsonObject, replicas: number): void {
  if (replicasOf(set) === replicas) return;
  const spec = { ...specOf(set), replicas };
  const generation = numberAt(set, "metadata", "generation") + 1;
  context.write(replicaSetResource, withMetadata({ ...set, spec }, { generation }));
}

function sum(sets: readonly JsonObject[], count: (set: JsonObject) => number): number {
  return sets.reduce((total, set) => total + count(set), 0);
}

/**
 * One step of a rollout. The new ReplicaSet grows as far as the surge allows. Old ReplicaSets shrink while enough Pods
 * stay available.
 */
function roll(context: ControllerContext, deployment: JsonObject, { newest, old }: Sets): void {
  const limits = limitsOf(deployment);
  if (isRecreate(deployment)) {
    for (const set of old) scaleSet(context, set, 0);
    const gone = old.every((set) => numberAt(set, "status", "replicas") === 0);
    if (gone) scaleSet(context, newest, limits.replicas);
    return;
  }
  const total = replicasOf(newest) + sum(old, replicasOf);
  const room = Math.max(0, limits.replicas + limits.surge - total);
  const target =
    replicasOf(newest) > limits.replicas ? limits.replicas : Math.min(limits.replicas, replicasOf(newest) + room);
  scaleSet(context, newest, target);
  const available = (set: JsonObject) => numberAt(set, "status", "availableReplicas");
  const minAvailable = limits.replicas - limits.unavailable;
  const newUnavailable = Math.max(0, target - available(newest));
  let removable = Math.max(0, total - minAvailable - newUnavailable);
  // Statuses lag behind the spec. `removable` counts desired Pods, so that no Pod is removed twice.
  if (removable === 0) return;
  for (const set of old) {
    const broken = Math.min(removable, Math.max(0, replicasOf(set) - available(set)));
    if (broken > 0) scaleSet(context, set, replicasOf(set) - broken);
    removable -= broken;
  }
  let spare = Math.min(removable, Math.max(0, available(newest) + sum(old, available) - minAvailable));
  for (const set of old.map((each) => fresh(context, each))) {
    const down = Math.min(spare, replicasOf(set));
    if (down > 0) scaleSet(context, set, replicasOf(set) - down);
    spare -= down;
  }
}

/** Deletes old ReplicaSets beyond `revisionHistoryLimit`, the oldest first. */
function dropHistory(context: ControllerContext, deployment: JsonObject, old: readonly JsonObject[]): void {
  const limit = valueAt(deployment, "spec", "revisionHistoryLimit");
  const empty = old
    .map((set) => fresh(context, set))
    .filter((set) => replicasOf(set) === 0 && numberAt(set, "status", "replicas") === 0);
  const surplus = empty.length - (typeof limit === "number" ? limit : 10);
  if (surplus <= 0) return;
  for (const set of empty.sort((a, b) => revisionOf(a) - revisionOf(b)).slice(0, surplus))
    context.remove(replicaSetResource, set);
}

function updateStatus(context: ControllerContext, deployment: JsonObject): void {
  const live = context.cluster.store.get(deploymentResource, keyOf(deployment));
  if (live === undefined) return;
  const sets = context.owners.dependents(uidOf(live), replicaSetResource).map(({ object }) => object);
  const newest = sets.find((set) => sameTemplate(set, live));
  const replicas = sum(sets, (set) => numberAt(set, "status", "replicas"));
  const availableReplicas = sum(sets, (set) => numberAt(set, "status", "availableReplicas"));
  const counts = {
    replicas,
    updatedReplicas: newest === undefined ? 0 : numberAt(newest, "status", "replicas"),
    readyReplicas: sum(sets, (set) => numberAt(set, "status", "readyReplicas")),
    availableReplicas,
    unavailableReplicas: Math.max(0, sum(sets, replicasOf) - availableReplicas),
    terminatingReplicas: 0,
  };
  const progressing = progressingCondition(context, live, { counts, newest });
  const status = {
    observedGeneration: numberAt(live, "metadata", "generation"),
    ...counts,
    conditions: [
      availableCondition(context, live, availableReplicas),
      ...(progressing === undefined ? [] : [progressing]),
    ],
  };
  const revision = newest === undefined ? undefined : String(revisionOf(newest));
  context.writeStatus(deploymentResource, live, {
    status,
    ...(revision === undefined ? {} : { annotations: { [revisionAnnotation]: revision } }),
  });
}

interface Condition {
  readonly type: string;
  readonly status: "True" | "False";
  readonly reason: string;
  readonly message: string;
  /** True on progress: then `lastUpdateTime` changes even if no other field does. */
  readonly moved?: boolean;
}

/** A condition keeps its times while it does not change. Progress alone changes `lastUpdateTime`. */
function stamped(context: ControllerContext, before: JsonObject | undefined, next: Condition): JsonObject {
  const now = context.cluster.now();
  const { type, status, reason, message, moved = false } = next;
  const sameStatus = before?.status === status;
  const same = sameStatus && before?.reason === reason && !moved;
  if (same && before !== undefined) return { ...before, message };
  return {
    type,
    status,
    lastUpdateTime: now,
    lastTransitionTime: sameStatus ? before?.lastTransitionTime : now,
    reason,
    message,
  };
}

function availableCondition(context: ControllerContext, deployment: JsonObject, available: number): JsonObject {
  const { replicas, unavailable } = limitsOf(deployment);
  const enough = available >= replicas - unavailable;
  return stamped(context, conditionOf(deployment, "Available"), {
    type: "Available",
    status: enough ? "True" : "False",
    reason: enough ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable",
    message: enough ? "Deployment has minimum availability." : "Deployment does not have minimum availability.",
  });
}

interface Progress {
  readonly counts: Readonly<Record<"replicas" | "updatedReplicas" | "readyReplicas" | "availableReplicas", number>>;
  readonly newest: JsonObject | undefined;
}

function progressingCondition(
  context: ControllerContext,
  deployment: JsonObject,
  { counts, newest }: Progress,
): JsonObject | undefined {
  const before = conditionOf(deployment, "Progressing");
  const replicas = replicasOf(deployment);
  const name = newest === undefined ? "" : nameOf(newest);
  const shown = `ReplicaSet ${JSON.stringify(name)}`;
  const complete =
    counts.updatedReplicas === replicas &&
    counts.replicas === replicas &&
    counts.availableReplicas === replicas &&
    newest !== undefined;
  if (complete) {
    const message = `${shown} has successfully progressed.`;
    return stamped(context, before, { type: "Progressing", status: "True", reason: "NewReplicaSetAvailable", message });
  }
  const was = statusOf(deployment);
  const old = (count: { readonly replicas: number; readonly updatedReplicas: number }) =>
    count.replicas - count.updatedReplicas;
  const moved =
    counts.updatedReplicas > numberAt(was, "updatedReplicas") ||
    counts.readyReplicas > numberAt(was, "readyReplicas") ||
    counts.availableReplicas > numberAt(was, "availableReplicas") ||
    old(counts) < numberAt(was, "replicas") - numberAt(was, "updatedReplicas") ||
    numberAt(was, "observedGeneration") < numberAt(deployment, "metadata", "generation");
  const deadline = numberAt(deployment, "spec", "progressDeadlineSeconds") * 1_000;
  const since = Date.parse(stringAt(before, "lastUpdateTime") ?? "") || context.cluster.options.clock();
  const finished = before?.reason === "NewReplicaSetAvailable";
  if (!moved && !finished && before !== undefined && context.cluster.options.clock() >= since + deadline) {
    const message = `${shown} has timed out progressing.`;
    return stamped(context, before, {
      type: "Progressing",
      status: "False",
      reason: "ProgressDeadlineExceeded",
      message,
    });
  }
  if (before?.reason === "ProgressDeadlineExceeded" && !moved) return before;
  const at = (moved || finished ? context.cluster.options.clock() : since) + deadline;
  checkAgain(context, deployment, at + 1_000);
  const message = `${shown} is progressing.`;
  return stamped(context, before, { type: "Progressing", status: "True", reason: "ReplicaSetUpdated", message, moved });
}

/** Condition times are whole seconds, so this checks the deadline one second late. */
function checkAgain(context: ControllerContext, deployment: JsonObject, atMs: number): void {
  const key = keyOf(deployment);
  const { scheduler, cluster } = context;
  scheduler.cancel(`deadline ${key}`);
  scheduler.at(`deadline ${key}`, atMs, () => {
    const live = cluster.store.get(deploymentResource, key);
    if (live !== undefined) reconcileDeployment(context, live);
  });
}
