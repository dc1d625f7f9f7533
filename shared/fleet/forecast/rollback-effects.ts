/** Objects that a rollback deletes, creates or runs again, and what it cannot take back, by the stored renderings. Pure. */

import { defined } from "#shared/base/defined.ts";
import { canonicalJson, isJsonObject, type Json, type JsonObject } from "#shared/base/json.ts";
import { compareText } from "#shared/base/text-order.ts";
import { movesAmong, type TemplateSides } from "#shared/fleet/forecast/moved-objects.ts";
import { deletionWarning } from "#shared/fleet/forecast/object-guards.ts";
import { reasonToKeep } from "#shared/kube/engine/deletion-guards.ts";
import { type ManifestObject, objectIdOf } from "#shared/kube/kube-object.ts";
import { describeObject, type ObjectId, objectIdKey } from "#shared/kube/object-id.ts";
import { type ApplyEvent, hookMarksOf, isHook } from "#shared/kube/order-marks.ts";
import type { Rendering } from "#shared/source/rendering.ts";

/**
 * The effects of a rollback on an object, the worst first.
 * - `unchangeable`: a field differs that the API server does not change, so that the apply fails if the cluster has it;
 * - `versionLost`: a definition loses a version in which objects may be stored, so that the apply fails;
 * - `deleted`: the older rendering does not have it; `kept`: neither, but it stays;
 * - `ran`: what it did is not undone; `runsAgain`: it is run once more; `createdAgain`: the newer rendering dropped it.
 */
export const effectKinds = [
  "unchangeable",
  "versionLost",
  "deleted",
  "ran",
  "runsAgain",
  "createdAgain",
  "kept",
] as const;
export type EffectKind = (typeof effectKinds)[number];

export interface RollbackEffect {
  readonly how: EffectKind;
  /** `Job shop/migrate` */
  readonly object: string;
  /** Name of the Sync. */
  readonly sync: string;
  /** Number of clusters that have it so, at most. */
  readonly clusters: number;
  readonly why?: string;
}

/** The effects of a rollback on objects, as far as they can be read. */
export interface ObjectEffects {
  /** The worst first. */
  readonly effects: readonly RollbackEffect[];
  /** Number of further effects. */
  readonly more: number;
  /** Clusters of which nothing is said, and why. */
  readonly notCompared: readonly { readonly clusters: number; readonly why: string }[];
}

/** One template on some clusters: what the newer rollout gave them, and what the older one did. */
export interface SyncSides {
  readonly sync: string;
  /** Absent: the newer rollout dropped it. */
  readonly before?: Rendering | undefined;
  /** Absent: the rollback deletes it. */
  readonly after?: Rendering | undefined;
  readonly prune: boolean;
}

/** Clusters that get the same back. */
export interface AlikeClusters {
  readonly clusters: number;
  /** Those that differ. */
  readonly syncs: readonly SyncSides[];
}

export function rollbackEffects(alike: readonly AlikeClusters[]): readonly RollbackEffect[] {
  const found = new Map<string, RollbackEffect>();
  for (const { clusters, syncs } of alike)
    for (const effect of effectsOn(syncs)) {
      const key = canonicalJson({ ...effect });
      found.set(key, { ...effect, clusters: (found.get(key)?.clusters ?? 0) + clusters });
    }
  const rank = ({ how }: RollbackEffect) => effectKinds.indexOf(how);
  return [...found.values()].sort(
    (a, b) => rank(a) - rank(b) || b.clusters - a.clusters || compareText(a.object, b.object),
  );
}

type Effect = Omit<RollbackEffect, "clusters">;

function effectsOn(syncs: readonly SyncSides[]): readonly Effect[] {
  const sides = syncs.map(({ sync, before, after, prune }) => {
    const event: ApplyEvent = before === undefined ? "install" : "upgrade";
    return {
      sync,
      before: before?.upgrade ?? [],
      after: after?.[event] ?? [],
      event,
      prune: prune || after === undefined,
    };
  });
  const moves = movesAmong(sides);
  const taken = new Set(sides.flatMap(({ before }) => before.map((object) => objectIdKey(objectIdOf(object)))));
  return sides.flatMap((side) => [
    ...side.before.filter(runsOnce).map((object) => effect(side, object, { how: "ran", why: "what it did stays" })),
    ...moves.leaving(side).flatMap((object) => (isHook(object) ? [] : [leaving(side, object)])),
    ...side.after.flatMap((object) => returning(side, object, taken)),
    ...changedIn(side).flatMap(([was, is]) => changing(side, was, is)),
  ]);
}

type Side = TemplateSides & { readonly event: ApplyEvent; readonly prune: boolean };

function effect({ sync }: Side, object: ManifestObject, said: Pick<Effect, "how" | "why">): Effect {
  return { ...said, object: describeObject(objectIdOf(object)), sync };
}

/** A hook that does something, or a Job. */
function runsOnce(object: ManifestObject): boolean {
  const hook = hookMarksOf(object);
  if (hook === undefined || "problem" in hook) return isJob(object);
  return !hook.isAid && (hook.phases.upgrade ?? hook.phases.install) !== undefined;
}

function isJob(object: ManifestObject): boolean {
  const { group, kind } = objectIdOf(object);
  return group === "batch" && kind === "Job";
}

function leaving(side: Side, object: ManifestObject): Effect {
  const id = objectIdOf(object);
  const kept = side.prune ? reasonToKeep(id, object) : "its template does not prune";
  if (kept !== undefined) return effect(side, object, { how: "kept", why: kept });
  return effect(side, object, { how: "deleted", ...defined({ why: deletionWarning(id) }) });
}

/** @param taken - the ids of all objects that the clusters have of these templates: one of them moves, or stays. */
function returning(side: Side, object: ManifestObject, taken: ReadonlySet<string>): readonly Effect[] {
  const hook = hookMarksOf(object);
  if (hook !== undefined && !("problem" in hook)) {
    const phase = hook.phases[side.event];
    if (hook.isAid || phase === undefined || phase === "SyncFail") return [];
    return [effect(side, object, { how: "runsAgain", why: `it is a ${phase} hook` })];
  }
  if (taken.has(objectIdKey(objectIdOf(object)))) return [];
  return [effect(side, object, { how: isJob(object) ? "runsAgain" : "createdAgain" })];
}

/** The objects, without hooks, that both renderings of a template have. */
function changedIn({ before, after }: Side): readonly (readonly [ManifestObject, ManifestObject])[] {
  const were = new Map(before.map((object) => [objectIdKey(objectIdOf(object)), object]));
  return after.flatMap((is) => {
    const was = were.get(objectIdKey(objectIdOf(is)));
    return was === undefined || isHook(is) ? [] : [[was, is] as const];
  });
}

function changing(side: Side, was: ManifestObject, is: ManifestObject): readonly Effect[] {
  const id = objectIdOf(is);
  const fields = fixedFields(id, was).filter((field) => !isSame(at(was, field), at(is, field)));
  const fixed =
    fields.length === 0
      ? []
      : [effect(side, is, { how: "unchangeable", why: `${fields.join(", ")} cannot be changed; ${remedy}` })];
  const lost = isDefinition(id) ? lostVersions(was, is) : [];
  return [
    ...fixed,
    ...lost.map(({ name, stored }) => {
      const why = stored ? `${name}, in which objects are stored` : `${name}, in which objects may be stored`;
      return effect(side, is, { how: "versionLost", why });
    }),
  ];
}

const remedy = "the apply fails where the cluster has the newer one, until somebody deletes the object";

/** Fields that an API server does not change, by kind. */
const fixedByKind: Readonly<Record<string, readonly string[]>> = {
  "apps/DaemonSet": ["spec.selector"],
  "apps/Deployment": ["spec.selector"],
  "apps/ReplicaSet": ["spec.selector"],
  "apps/StatefulSet": ["spec.selector", "spec.serviceName", "spec.volumeClaimTemplates", "spec.podManagementPolicy"],
  "batch/Job": ["spec.selector", "spec.template", "spec.completionMode"],
  "/Service": ["spec.clusterIP"],
  "/PersistentVolumeClaim": [
    ...["spec.accessModes", "spec.resources.requests.storage", "spec.storageClassName"],
    ...["spec.volumeMode", "spec.volumeName"],
  ],
  "/Secret": ["type"],
  "rbac.authorization.k8s.io/ClusterRoleBinding": ["roleRef"],
  "rbac.authorization.k8s.io/RoleBinding": ["roleRef"],
  "storage.k8s.io/StorageClass": ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"],
  "scheduling.k8s.io/PriorityClass": ["value"],
  "apiextensions.k8s.io/CustomResourceDefinition": ["spec.scope"],
};

function fixedFields({ group, kind }: ObjectId, was: ManifestObject): readonly string[] {
  const always = fixedByKind[`${group}/${kind}`] ?? [];
  const isFixed = group === "" && (kind === "ConfigMap" || kind === "Secret") && was.immutable === true;
  return isFixed ? [...always, "data", "binaryData", "stringData", "immutable"] : always;
}

function at(object: ManifestObject, field: string): Json | undefined {
  return field
    .split(".")
    .reduce<Json | undefined>((value, name) => (isJsonObject(value) ? value[name] : undefined), object as JsonObject);
}

function isSame(a: Json | undefined, b: Json | undefined): boolean {
  return canonicalJson(a ?? null) === canonicalJson(b ?? null);
}

function isDefinition({ group, kind }: ObjectId): boolean {
  return group === "apiextensions.k8s.io" && kind === "CustomResourceDefinition";
}

function lostVersions(was: ManifestObject, is: ManifestObject) {
  const names = new Set(versionsOf(is).map(({ name }) => name));
  return versionsOf(was).filter(({ name }) => !names.has(name));
}

function versionsOf(definition: ManifestObject): readonly { readonly name: string; readonly stored: boolean }[] {
  const versions = at(definition, "spec.versions");
  if (!Array.isArray(versions)) return [];
  return versions.flatMap((version) =>
    isJsonObject(version) && typeof version.name === "string"
      ? [{ name: version.name, stored: version.storage === true }]
      : [],
  );
}
