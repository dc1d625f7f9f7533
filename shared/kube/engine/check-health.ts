import type { Clock } from "#shared/base/clock.ts";
import { runConcurrently } from "#shared/base/run-concurrently.ts";
import { isLeftAlone } from "#shared/kube/apply-marks.ts";
import type { ClusterClient, KindInfo } from "#shared/kube/cluster-client.ts";
import { completePart, hasRemovedItself, removedItself } from "#shared/kube/engine/inventory-entry.ts";
import { listMembers } from "#shared/kube/engine/list-members.ts";
import { endsTheCheck, failureOf } from "#shared/kube/engine/object-failure.ts";
import { withFreshKinds } from "#shared/kube/engine/with-fresh-kinds.ts";
import { computeStatus } from "#shared/kube/health/compute-status.ts";
import { podProblems } from "#shared/kube/health/pod-problems.ts";
import { compareSeverity, failed, type Health, jobFailed, worstOf } from "#shared/kube/health/status.ts";
import type { Inventory, InventoryEntry } from "#shared/kube/inventory.ts";
import { type KubeObject, listAt, objectIdOf, stringAt, stringMapAt } from "#shared/kube/kube-object.ts";
import {
  describeObject,
  type GroupKind,
  isBuiltinGroup,
  kindKey,
  type ObjectId,
  objectIdKey,
} from "#shared/kube/object-id.ts";
import type { AnyReason } from "#shared/kube/reasons.ts";

export interface UnreadyObject extends Health {
  readonly id: ObjectId;
}

export interface HealthReport {
  readonly total: number;
  readonly ready: number;
  /** The number of objects with kstatus Failed. */
  readonly failed: number;
  /** The worst status of all objects: `Current` when every object is ready. */
  readonly worst: Health["status"];
  /** Worst first, at most 20. */
  readonly notReady: readonly UnreadyObject[];
  /** Records of Jobs that remove themselves and that were seen complete for the first time. */
  readonly complete: readonly InventoryEntry[];
}

const maxNotReady = 20;
/** Up to this many objects of a kind are read one by one. A LIST makes the server read the whole kind. */
const maxSingleReads = 4;
const concurrency = 8;
/** The limit of workloads whose Pods are searched for a reason, and of Pods read for each. */
const maxExplained = 5;
const maxPods = 50;
/** Starting a node for a Pod takes minutes. */
const unschedulableGraceSeconds = 600;

/** Kinds without a status. Their metadata is enough for their health. */
const statusless = new Set([
  "/ConfigMap",
  "/Secret",
  "/ServiceAccount",
  "/LimitRange",
  "/Endpoints",
  "batch/CronJob",
  "discovery.k8s.io/EndpointSlice",
  "networking.k8s.io/NetworkPolicy",
  "networking.k8s.io/IngressClass",
  "node.k8s.io/RuntimeClass",
  "rbac.authorization.k8s.io/ClusterRole",
  "rbac.authorization.k8s.io/ClusterRoleBinding",
  "rbac.authorization.k8s.io/Role",
  "rbac.authorization.k8s.io/RoleBinding",
  "scheduling.k8s.io/PriorityClass",
  "storage.k8s.io/StorageClass",
]);

const workloads = new Set(["apps/Deployment", "apps/StatefulSet", "apps/DaemonSet", "apps/ReplicaSet", "batch/Job"]);

/** Whether the health of this kind needs more than metadata. */
export function needsWholeObjects(kind: GroupKind): boolean {
  return !statusless.has(kindKey(kind));
}

export interface HealthRequest {
  readonly inventory: Inventory;
  readonly clock: Clock;
  /**
   * By `describeObject`, the Jobs that had failed at the last check. For a Job that removes itself, that result is
   * final.
   */
  readonly failedJobs?: ReadonlySet<string>;
  /**
   * Objects that were read just before, by `objectIdKey`, whole where `needsWholeObjects` requires it. Kinds that are
   * complete here are not read again.
   */
  readonly live?: ReadonlyMap<string, KubeObject>;
}

/**
 * Checks once the health of every lasting object of the inventory, without hooks and excluded objects. It waits for
 * nothing; the caller checks again. An unreadable object is `Unknown`. A missing object is `NotFound`, also when
 * another object has its name. For workloads that are not ready, the message ends with the problems of their Pods.
 * @throws KubeError when the cluster as a whole does not answer or refuses access.
 */
export async function checkHealth(client: ClusterClient, request: HealthRequest): Promise<HealthReport> {
  const { inventory, clock, failedJobs = new Set(), live = new Map() } = request;
  const lasting = inventory.entries.filter(({ hook, watched }) => hook === undefined && watched === undefined);
  const healths = new Map<string, Health>();
  const complete: InventoryEntry[] = [];
  const unready: { readonly entry: InventoryEntry; readonly object: KubeObject }[] = [];
  await runConcurrently(groupByKind(lasting), concurrency, async (entries) => {
    const read = await readKind(client, { entries, live, setId: inventory.setId });
    for (const entry of entries) {
      const hasFailed = failedJobs.has(describeObject(entry.id)) && isRemovingItself(entry, read);
      const health = hasFailed ? removedJob : healthOf(entry, read, clock.now());
      healths.set(objectIdKey(entry.id), health);
      const object = read.objects?.get(objectIdKey(entry.id));
      if (object !== undefined && entry.complete !== true) {
        const seen = completePart(entry, object);
        if (seen.complete === true) complete.push({ ...entry, ...seen });
      }
      if (object && workloads.has(kindKey(entry.id)) && isUnready(health)) unready.push({ entry, object });
    }
  });
  await runConcurrently(unready.slice(0, maxExplained), concurrency, async ({ entry, object }) => {
    const key = objectIdKey(entry.id);
    const health = healths.get(key);
    if (health) healths.set(key, await explained(client, { entry, object, health, now: clock.now() }));
  });
  return { ...report(lasting, healths), complete };
}

interface KindReading {
  readonly info?: KindInfo;
  /** By `objectIdKey`; undefined when the kind could not be read. */
  readonly objects?: ReadonlyMap<string, KubeObject>;
  readonly failure?: { readonly reason: AnyReason; readonly message: string };
}

interface KindQuestion {
  readonly entries: readonly InventoryEntry[];
  readonly setId: string;
  readonly live: ReadonlyMap<string, KubeObject>;
}

async function readKind(client: ClusterClient, question: KindQuestion): Promise<KindReading> {
  const [first] = question.entries;
  if (first === undefined) return {};
  try {
    return await withFreshKinds(client, () => readServedKind(client, first, question));
  } catch (error) {
    const failure = failureOf(error);
    if (endsTheCheck(failure)) throw error;
    return { failure };
  }
}

async function readServedKind(
  client: ClusterClient,
  first: InventoryEntry,
  { entries, setId, live }: KindQuestion,
): Promise<KindReading> {
  const found = await client.lookup({ group: first.id.group, kind: first.id.kind });
  if (found.outcome === "unavailable") return { failure: { reason: "KindUnavailable", message: found.message } };
  if (found.outcome === "absent") return { objects: new Map() };
  const { info } = found;
  if (entries.every(({ id }) => live.has(objectIdKey(id)))) return { info, objects: live };
  const metadataOnly = statusless.has(kindKey(first.id)) ? ({ metadataOnly: true } as const) : {};
  if (entries.length > maxSingleReads) {
    const namespaces = entries.map(({ id }) => id.namespace);
    const items = await listMembers(client, info, { setId, namespaces: [...new Set(namespaces)], ...metadataOnly });
    return { info, objects: new Map(items.map((item) => [objectIdKey(objectIdOf(item, info)), item])) };
  }
  const objects = new Map<string, KubeObject>();
  for (const { id } of entries) {
    const object = await client.get(info, id, metadataOnly);
    if (object !== undefined) objects.set(objectIdKey(id), object);
  }
  return { info, objects };
}

/** The result of the Job is unknown. It is therefore not created again, and does not count as complete. */
function lostJob({ id }: InventoryEntry): Health {
  const message = `${describeObject(id)} was deleted before Starling saw it complete; the next attempt runs it again`;
  return failed("JobLost", message);
}

const removedJob = failed(jobFailed, "the Job failed and removed itself");

/** Whether it is removing itself or already has, provided that its kind could be read. */
function isRemovingItself(entry: InventoryEntry, { failure, objects }: KindReading): boolean {
  if (entry.expiring === undefined || failure !== undefined) return false;
  const object = objects?.get(objectIdKey(entry.id));
  return object === undefined || stringAt(object, "metadata", "deletionTimestamp") !== undefined;
}

function healthOf(entry: InventoryEntry, read: KindReading, now: Date): Health {
  if (read.failure) return { status: "Unknown", reason: read.failure.reason, message: read.failure.message };
  const object = read.objects?.get(objectIdKey(entry.id));
  if (object === undefined) {
    if (hasRemovedItself(entry, now)) return removedItself;
    if (entry.expiring !== undefined) return lostJob(entry);
    return { status: "NotFound", reason: "NotFound", message: "Resource not found" };
  }
  const uid = stringAt(object, "metadata", "uid");
  if (uid !== entry.uid) {
    const message = `another object has its name: uid ${uid}, applied ${entry.uid}`;
    return { status: "NotFound", reason: "Replaced", message };
  }
  // The mark in the cluster says that someone else is responsible for the object.
  if (isLeftAlone(object)) return { status: "Current", message: "its mark says that Starling leaves it alone" };
  return computeStatus(object, {
    now,
    minimumGeneration: entry.generation,
    unschedulableGraceSeconds,
    expectsStatus: read.info?.hasStatus === true && !isBuiltinGroup(entry.id.group),
  });
}

interface Explanation {
  readonly entry: InventoryEntry;
  readonly object: KubeObject;
  readonly health: Health;
  readonly now: Date;
}

/**
 * Adds the problems of the workload's Pods to its health. A StatefulSet or ReplicaSet in progress is Failed when one of
 * its Pods is, as in kstatus' readers. A Deployment has its own deadline for that.
 */
async function explained(client: ClusterClient, { entry, object, health, now }: Explanation): Promise<Health> {
  const pods = await podsOf(client, entry.id.namespace, object);
  const problems = podProblems(pods);
  const message = problems.length === 0 ? health.message : `${health.message}. ${problems.join("; ")}`;
  const judgesPods = entry.id.kind === "StatefulSet" || entry.id.kind === "ReplicaSet";
  if (!judgesPods || health.status !== "InProgress") return { ...health, message };
  const failures = pods.filter((pod) => computeStatus(pod, { now, unschedulableGraceSeconds }).status === "Failed");
  if (failures.length === 0) return { ...health, message };
  const text = [`${failures.length} pods have failed`, ...problems].join(". ");
  return { status: "Failed", reason: "PodsFailed", message: text };
}

async function podsOf(client: ClusterClient, namespace: string, workload: KubeObject): Promise<readonly KubeObject[]> {
  const labels = stringMapAt(workload, "spec", "selector", "matchLabels");
  const labelSelector = Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(",");
  if (labelSelector === "" || listAt(workload, "spec", "selector", "matchExpressions").length > 0) return [];
  try {
    const found = await client.lookup({ group: "", kind: "Pod" });
    if (found.outcome !== "found") return [];
    return await client.list(found.info, { namespace, labelSelector, maxItems: maxPods });
  } catch (error) {
    // The reason is optional. The health is valid without it.
    failureOf(error);
    return [];
  }
}

function report(
  entries: readonly InventoryEntry[],
  healths: ReadonlyMap<string, Health>,
): Omit<HealthReport, "complete"> {
  const notReady: UnreadyObject[] = [];
  let failed = 0;
  for (const { id } of entries) {
    const health = healths.get(objectIdKey(id));
    if (health === undefined || health.status === "Current") continue;
    if (health.status === "Failed") failed += 1;
    notReady.push({ id, ...health });
  }
  notReady.sort((a, b) => compareSeverity(a.status, b.status));
  return {
    total: entries.length,
    ready: entries.length - notReady.length,
    failed,
    worst: worstOf(notReady.map(({ status }) => status)),
    notReady: notReady.slice(0, maxNotReady),
  };
}

function isUnready({ status }: Health): boolean {
  return status === "InProgress" || status === "Failed";
}

function groupByKind(entries: readonly InventoryEntry[]): readonly (readonly InventoryEntry[])[] {
  const groups = new Map<string, InventoryEntry[]>();
  for (const entry of entries) {
    const group = groups.get(kindKey(entry.id));
    if (group) group.push(entry);
    else groups.set(kindKey(entry.id), [entry]);
  }
  return [...groups.values()];
}
