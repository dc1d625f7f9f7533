import { createHash } from "node:crypto";
import type { ControllerContext } from "#apiserver/controllers/controller-context.ts";
import { uidOf } from "#apiserver/controllers/owner-index.ts";
import { podResource, readySince } from "#apiserver/controllers/pod-controller.ts";
import { canonicalJson, isJsonObject, type Json, type JsonObject } from "#apiserver/json.ts";
import { listAt, stringAt, valueAt } from "#apiserver/object-fields.ts";
import { nameOf } from "#apiserver/operations/object-meta.ts";
import { generatedSuffix } from "#apiserver/operations/write-operations.ts";

/** The spec fields that the controllers of workloads use. */
export function specOf(object: JsonObject): JsonObject {
  return isJsonObject(object.spec) ? object.spec : {};
}

export function statusOf(object: JsonObject): JsonObject {
  return isJsonObject(object.status) ? object.status : {};
}

export function replicasOf(object: JsonObject): number {
  const replicas = specOf(object).replicas;
  return typeof replicas === "number" ? replicas : 1;
}

export function numberAt(object: Json | undefined, ...path: readonly string[]): number {
  const value = valueAt(object, ...path);
  return typeof value === "number" ? value : 0;
}

export function isDeleting(object: JsonObject): boolean {
  return valueAt(object, "metadata", "deletionTimestamp") !== undefined;
}

/** The owner reference that a controller sets on objects that it creates. */
export function ownerReference(owner: JsonObject): JsonObject {
  return {
    apiVersion: owner.apiVersion,
    kind: owner.kind,
    name: nameOf(owner),
    uid: uidOf(owner),
    controller: true,
    blockOwnerDeletion: true,
  };
}

const hashAlphabet = "bcdfghjklmnpqrstvwxz2456789";

/** A short hash of a template, like `pod-template-hash`. */
export function templateHash(template: Json | undefined): string {
  const digest = createHash("sha256")
    .update(canonicalJson(template ?? null))
    .digest();
  return [...digest.subarray(0, 10)].map((byte) => hashAlphabet[byte % hashAlphabet.length]).join("");
}

/** The Pods of a controller, without those that are being deleted. */
export function podsOf(context: ControllerContext, owner: JsonObject): JsonObject[] {
  const pods = context.owners.dependents(uidOf(owner), podResource).map(({ object }) => object);
  return pods.filter((pod) => !isDeleting(pod));
}

export interface NewPod {
  /** The default is the owner's name with a random suffix. */
  readonly name?: string;
  readonly template: JsonObject;
  readonly labels: JsonObject;
}

export function createPod(context: ControllerContext, owner: JsonObject, { name, template, labels }: NewPod): void {
  const metadata = isJsonObject(template.metadata) ? template.metadata : {};
  const prefix = `${nameOf(owner)}-`;
  const own = name === undefined ? { name: `${prefix}${generatedSuffix()}`, generateName: prefix } : { name };
  context.create(podResource, {
    metadata: {
      ...own,
      namespace: stringAt(owner, "metadata", "namespace"),
      labels: { ...(isJsonObject(metadata.labels) ? metadata.labels : {}), ...labels },
      ...(metadata.annotations === undefined ? {} : { annotations: metadata.annotations }),
      ...(metadata.finalizers === undefined ? {} : { finalizers: metadata.finalizers }),
      ownerReferences: [ownerReference(owner)],
    },
    spec: template.spec,
    status: { phase: "Pending", qosClass: "BestEffort" },
  });
}

export function templateOf(object: JsonObject): JsonObject {
  const template = specOf(object).template;
  return isJsonObject(template) ? template : {};
}

export interface PodCounts {
  readonly total: number;
  readonly ready: number;
  readonly available: number;
  /** The time in milliseconds at which the next ready Pod becomes available. */
  readonly nextAvailableAt: number | undefined;
}

/** Counts Pods. A ready Pod is available after `minReadySeconds`. */
export function countPods(
  pods: readonly JsonObject[],
  { minReadySeconds, nowMs }: { readonly minReadySeconds: number; readonly nowMs: number },
): PodCounts {
  let ready = 0;
  let available = 0;
  let nextAvailableAt: number | undefined;
  for (const pod of pods) {
    const since = readySince(pod);
    if (since === undefined) continue;
    ready += 1;
    const at = since + minReadySeconds * 1_000;
    if (minReadySeconds === 0 || at <= nowMs) available += 1;
    else nextAvailableAt = Math.min(nextAvailableAt ?? at, at);
  }
  return { total: pods.length, ready, available, nextAvailableAt };
}

export function conditionOf(object: JsonObject, type: string): JsonObject | undefined {
  return listAt(object, "status", "conditions").find(
    (condition): condition is JsonObject => isJsonObject(condition) && condition.type === type,
  );
}

export interface Due {
  readonly resource: string;
  readonly key: string;
  /** The default is now. */
  readonly atMs?: number;
  /** Separates different kinds of work on one object. */
  readonly topic?: string;
}

/** Schedules work on one object. The work gets the object as stored at that time. */
export function enqueue(context: ControllerContext, due: Due, work: (object: JsonObject) => void): void {
  const { cluster, scheduler } = context;
  const { resource, key, topic = "reconcile" } = due;
  scheduler.at(`${topic} ${resource} ${key}`, due.atMs ?? cluster.options.clock(), () => {
    const object = cluster.store.get(resource, key);
    if (object !== undefined) work(object);
  });
}
