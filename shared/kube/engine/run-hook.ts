/**
 * Runs a hook: an object that is created anew for each rendering, awaited to its end, and then left or deleted. An
 * annotation of the object names its run, so that a worker that does not know of it does not run it again.
 */
import type { SleepingClock } from "#shared/base/clock.ts";
import type { ClusterClient, KindInfo } from "#shared/kube/cluster-client.ts";
import { type AppliedObject, applyObject } from "#shared/kube/engine/apply-object.ts";
import type { StandingOf } from "#shared/kube/engine/foreign-object.ts";
import { heldBy } from "#shared/kube/engine/held-by.ts";
import { entryOf } from "#shared/kube/engine/inventory-entry.ts";
import { definiteFailure, failureOf } from "#shared/kube/engine/object-failure.ts";
import { isCutOff, outOfTime } from "#shared/kube/engine/own-deadline.ts";
import { type ResolvedObject, resolveKind } from "#shared/kube/engine/resolve-objects.ts";
import { computeStatus } from "#shared/kube/health/compute-status.ts";
import { current, failed, type Health, inProgress } from "#shared/kube/health/status.ts";
import type { InventoryEntry } from "#shared/kube/inventory.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import {
  annotationsOf,
  isBeingDeleted,
  type KubeObject,
  type ManifestObject,
  stringAt,
  valueAt,
} from "#shared/kube/kube-object.ts";
import { foreignOwner, isMember, keepMark } from "#shared/kube/membership.ts";
import { describeObject } from "#shared/kube/object-id.ts";
import type { HookMarks } from "#shared/kube/order-marks.ts";

const runAnnotation = "starling.dev/hook-run";

/** The rendering and the attempt of a hook's run. The next attempt runs a failed hook again, and no other hook. */
export interface HookRun {
  readonly renderDigest: string;
  readonly attempt: number;
}

interface HookRequest {
  readonly target: ResolvedObject;
  readonly hook: HookMarks;
  readonly run: HookRun;
  readonly setId: string;
  /** The object's entry in the inventory. */
  readonly known: InventoryEntry | undefined;
  /** Absent: the set has no siblings. */
  readonly standingOf?: StandingOf;
  readonly clock: SleepingClock;
  readonly deadline: Date;
}

/**
 * Ensures that the hook was created exactly once for this run, and returns its health: `Current` when it has completed,
 * `Failed` when it has not succeeded. It first deletes the hook of an earlier run, if the hook's policy says so.
 */
export async function runHook(client: ClusterClient, request: HookRequest): Promise<AppliedObject> {
  const { id } = request.target;
  try {
    return await runAsFound(client, request);
  } catch (error) {
    if (isCutOff(error, request)) return { id, outcome: "waiting", ...outOfTime };
    return { id, outcome: "failed", failure: failureOf(error) };
  }
}

/** The run of a hook, for its record; empty for other objects. */
export function hookPart(live: KubeObject): Pick<InventoryEntry, "hook"> {
  const hook = annotationsOf(live)[runAnnotation];
  return hook === undefined ? {} : { hook };
}

async function runAsFound(client: ClusterClient, request: HookRequest): Promise<AppliedObject> {
  const { target, run, known, setId, clock } = request;
  const { id } = target;
  const kind = await resolveKind(client, target.object);
  if (!("plural" in kind)) return { id, outcome: "failed", failure: kind };
  const live = await client.get(kind, id);
  if (live === undefined) return known?.hook === markOf(run) ? lost(request) : make(client, request);
  if (isBeingDeleted(live)) return ending(request, live);
  const made = isMember(live, setId) ? runFrom(annotationsOf(live)[runAnnotation]) : undefined;
  if (made?.renderDigest === run.renderDigest) {
    const health = hookHealth(live, clock.now());
    if (health.status !== "Failed" || made.attempt === run.attempt) return begun(request, { kind, live, health });
  }
  return replace(client, request, { kind, live });
}

function markOf({ renderDigest, attempt }: HookRun): string {
  return `${renderDigest}#${attempt}`;
}

function runFrom(mark = ""): HookRun | undefined {
  const [renderDigest = "", attempt] = mark.split("#");
  return attempt === undefined ? undefined : { renderDigest, attempt: Number(attempt) };
}

async function make(client: ClusterClient, { target, run, ...request }: HookRequest): Promise<AppliedObject> {
  const { setId, clock, deadline } = request;
  const object = asRun(target.object, markOf(run));
  const asked = { target: { ...target, object }, setId, adopt: [], clock, deadline };
  const result = await applyObject(client, asked);
  return "health" in result ? { ...result, entry: { ...result.entry, hook: markOf(run) } } : result;
}

/** A Job that removes itself would remove its result. The hook's policy decides about its deletion. */
function asRun(object: ManifestObject, mark: string): ManifestObject {
  const annotations = { ...annotationsOf(object), [runAnnotation]: mark };
  const marked = { ...object, metadata: { ...object.metadata, annotations } };
  if (valueAt(object, "spec", "ttlSecondsAfterFinished") === undefined || object.kind !== "Job") return marked;
  const { ttlSecondsAfterFinished: _, ...spec } = valueAt(object, "spec") as Record<string, never>;
  return { ...marked, spec };
}

interface Found {
  readonly kind: KindInfo;
  readonly live: KubeObject;
}

function begun(
  { target: { id } }: HookRequest,
  { kind, live, health }: Found & { readonly health: Health },
): AppliedObject {
  const entry = { ...entryOf(live, { id, version: kind.version }), ...hookPart(live) };
  return { id, outcome: "unchanged", entry, health, warnings: [] };
}

/** The existing object is from another run. */
async function replace(client: ClusterClient, request: HookRequest, { kind, live }: Found): Promise<AppliedObject> {
  const { id } = request.target;
  const obstacle = await whyKept(request, live);
  if (obstacle !== undefined) {
    const message = `${describeObject(id)} exists from an earlier run and ${obstacle}`;
    return { id, outcome: "failed", failure: definiteFailure({ class: "foreign", reason: "HookExists", message }) };
  }
  try {
    await client.delete(kind, id, { uid: stringAt(live, "metadata", "uid") ?? "" });
  } catch (error) {
    if (!(error instanceof KubeError) || error.class !== "notFound") throw error;
  }
  const left = await client.get(kind, id, { metadataOnly: true });
  return left === undefined ? make(client, request) : ending(request, left);
}

async function whyKept(request: HookRequest, live: KubeObject): Promise<string | undefined> {
  const { hook, setId } = request;
  if (!isMember(live, setId) && !(await hasMoved(request, live)))
    return "was not created by this Sync; delete it, or rename the hook";
  const mark = keepMark(live);
  if (mark !== undefined) return `is marked ${mark}; delete it`;
  if (hook.deletePolicies.has("BeforeHookCreation")) return undefined;
  return "its delete policy does not include BeforeHookCreation (before-hook-creation); add it, or delete the object";
}

/** A sibling created the object, and does not desire it any more. */
async function hasMoved({ target: { id }, setId, standingOf }: HookRequest, live: KubeObject): Promise<boolean> {
  const owner = foreignOwner(live, setId);
  if (owner?.tool !== "applyset" || !isMember(live, owner.owner)) return false;
  if (foreignOwner(live, owner.owner) !== undefined) return false;
  return (await standingOf?.(owner.owner, id)) === "lacks";
}

function ending({ target: { id } }: HookRequest, live: KubeObject): AppliedObject {
  const message = `${describeObject(id)} is being deleted${heldBy(live)}; it runs after the deletion`;
  return { id, outcome: "waiting", reason: "Terminating", message };
}

function lost({ target: { id } }: HookRequest): AppliedObject {
  const message = `${describeObject(id)} was deleted before Starling saw whether it had succeeded; the next attempt runs it again`;
  return { id, outcome: "failed", failure: definiteFailure({ class: "replaced", reason: "HookLost", message }) };
}

/** The health of a run. A ready Pod has not ended, and a suspended Job has not begun. */
function hookHealth(live: KubeObject, now: Date): Health {
  if (stringAt(live, "kind") === "Pod" && stringAt(live, "apiVersion") === "v1") return podRun(live);
  const isSuspended = stringAt(live, "kind") === "Job" && valueAt(live, "spec", "suspend") === true;
  return isSuspended ? inProgress("JobSuspended", "Job is suspended") : computeStatus(live, { now });
}

function podRun(live: KubeObject): Health {
  const phase = stringAt(live, "status", "phase") ?? "Pending";
  if (phase === "Succeeded") return current("Pod has completed successfully");
  if (phase === "Failed") return failed("PodFailed", "Pod has completed, but not successfully");
  return inProgress("PodRunning", `Pod is ${phase}`);
}
