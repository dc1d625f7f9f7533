import type { SleepingClock } from "#shared/base/clock.ts";
import { defined } from "#shared/base/defined.ts";
import { digestOf } from "#shared/base/digest.ts";
import { foreignList } from "#shared/base/foreign-text.ts";
import { isLeftAlone, isOnlyMade, isShared } from "#shared/kube/apply-marks.ts";
import { notBase64 } from "#shared/kube/base64-fields.ts";
import type { ClusterClient, KindInfo, WriteAnswer } from "#shared/kube/cluster-client.ts";
import { foreignFailure, type StandingOf } from "#shared/kube/engine/foreign-object.ts";
import { heldBy } from "#shared/kube/engine/held-by.ts";
import {
  completePart,
  entryOf,
  expiringPart,
  hasRemovedItself,
  removedItself,
} from "#shared/kube/engine/inventory-entry.ts";
import { foundThere, keptAsItIs } from "#shared/kube/engine/kept-objects.ts";
import { definiteFailure, failureOf, type ObjectFailure } from "#shared/kube/engine/object-failure.ts";
import { isCutOff, type OwnDeadline, outOfTime } from "#shared/kube/engine/own-deadline.ts";
import { type ResolvedObject, resolveKind } from "#shared/kube/engine/resolve-objects.ts";
import { computeStatus } from "#shared/kube/health/compute-status.ts";
import type { Health } from "#shared/kube/health/status.ts";
import type { InventoryEntry } from "#shared/kube/inventory.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import { isBeingDeleted, type KubeObject, type ManifestObject, stringAt } from "#shared/kube/kube-object.ts";
import { retagPatch, takeOverPatch } from "#shared/kube/managed-fields.ts";
import { type ForeignTool, isMember } from "#shared/kube/membership.ts";
import { describeObject, isBuiltinGroup, type ObjectId } from "#shared/kube/object-id.ts";
import type { AnyReason } from "#shared/kube/reasons.ts";

/**
 * The result of applying one object. `unchanged` means that Starling's fields have the same values as after its last
 * apply. `waiting` is not a failure: something else has to end first.
 */
export type AppliedObject =
  | {
      readonly id: ObjectId;
      readonly outcome: "created" | "configured" | "unchanged";
      readonly entry: InventoryEntry;
      readonly health: Health;
      readonly warnings: readonly string[];
      /** The object existed before and did not belong to this set. Now it does. */
      readonly adopted?: true;
    }
  /** An earlier run of the same attempt applied it. */
  | { readonly id: ObjectId; readonly outcome: "resumed"; readonly entry: InventoryEntry }
  | { readonly id: ObjectId; readonly outcome: "failed"; readonly failure: ObjectFailure }
  | {
      readonly id: ObjectId;
      readonly outcome: "waiting" | "skipped";
      readonly reason: AnyReason;
      readonly message: string;
    };

export interface ApplyObjectRequest extends OwnDeadline {
  readonly clock: SleepingClock;
  readonly target: ResolvedObject;
  readonly setId: string;
  /** The object's entry in the inventory. */
  readonly known?: InventoryEntry;
  /**
   * The object's metadata, read just before because the object is unknown or has changed since it was recorded.
   * Undefined when it does not exist.
   */
  readonly existing?: KubeObject;
  readonly adopt: readonly ForeignTool[];
  readonly standingOf?: StandingOf;
}

/** How often an object may prove to be replaced or changed. Each time, it is read again. */
const maxReadings = 3;

/** Attempts to take over other managers' fields, when another writer interferes each time. */
const maxTakeOvers = 3;

/**
 * Applies one object, and reads everything that must be recorded from the server's answer. Problems of the object are
 * part of the result.
 * @throws KubeError when an object that changed in the meantime cannot be read again.
 */
export async function applyObject(client: ClusterClient, request: ApplyObjectRequest): Promise<AppliedObject> {
  let asked = request;
  for (let reading = 0; ; reading += 1) {
    const result = await applyAsKnown(client, asked);
    if (!isOutdated(result) || reading === maxReadings) return result;
    const { existing: _, ...rest } = request;
    const kind = await resolveKind(client, request.target.object);
    const live = "plural" in kind ? await client.get(kind, request.target.id, { metadataOnly: true }) : undefined;
    asked = live === undefined ? withoutRecord(rest) : asRead(rest, live);
  }
}

/** The object was replaced, or changed since it was recorded, so that it may belong to someone else. */
function isOutdated(result: AppliedObject): boolean {
  return result.outcome === "failed" && (result.failure.class === "replaced" || result.failure.class === "conflict");
}

/** The record of a replaced object does not apply to the new object. */
function asRead(request: ApplyObjectRequest, existing: KubeObject): ApplyObjectRequest {
  const isKnown = request.known?.uid === stringAt(existing, "metadata", "uid");
  return { ...(isKnown ? request : withoutRecord(request)), existing };
}

function withoutRecord({ known: _, ...request }: ApplyObjectRequest): ApplyObjectRequest {
  return request;
}

/**
 * Applies to exactly the object that was recorded or just read. A different object of the same name, or a changed one,
 * may belong to someone else.
 */
async function applyAsKnown(client: ClusterClient, request: ApplyObjectRequest): Promise<AppliedObject> {
  const { target, setId, existing, known } = request;
  const { id } = target;
  if (existing !== undefined && !isOnlyMade(target.object)) {
    if (isBeingDeleted(existing)) return terminating(id, existing);
    if (isLeftAlone(existing)) return keptAsItIs(request, existing);
    const { adopt, standingOf } = request;
    const failure = await foreignFailure(id, existing, { setId, adopt, ...defined({ standingOf }) });
    if (failure !== undefined) return { id, outcome: "failed", failure };
  }
  try {
    if (known !== undefined && (await hasExpired(client, request))) {
      return { id, outcome: "unchanged", entry: known, health: removedItself, warnings: [] };
    }
    const kind = await resolveKind(client, target.object);
    if (!("plural" in kind)) return { id, outcome: "failed", failure: kind };
    if (isOnlyMade(target.object)) return await makeOnce(client, kind, request);
    const object = withUid(target.object, stringAt(existing, "metadata", "uid") ?? known?.uid);
    const expected = existing === undefined ? withVersion(object, known?.resourceVersion) : object;
    const answer = await applyOverObstacles({ client, clock: request.clock }, kind, expected);
    if (isBeingDeleted(answer.object)) return terminating(id, answer.object);
    const settled = isShared(answer.object) ? answer : await takeOver(client, kind, { object, answer });
    return applied(request, kind, { ...settled, created: answer.created });
  } catch (error) {
    return failed(request, error);
  }
}

/** Creates the object when it is missing, and otherwise leaves it as it is, whoever owns it. */
async function makeOnce(client: ClusterClient, kind: KindInfo, request: ApplyObjectRequest): Promise<AppliedObject> {
  const { target, clock } = request;
  const live = await client.get(kind, target.id, { metadataOnly: true });
  if (live !== undefined) return isBeingDeleted(live) ? terminating(target.id, live) : foundThere(request, live);
  const answer = await applyOverObstacles({ client, clock }, kind, overNothing(target.object));
  const result = applied(request, kind, answer);
  return "entry" in result ? { ...result, entry: { ...result.entry, watched: "presence" } } : result;
}

/** With the uid, the server refuses the apply when no object has this uid. Nobody owns the field. */
function withUid(object: ManifestObject, uid = ""): ManifestObject {
  return uid === "" ? object : { ...object, metadata: { ...object.metadata, uid } };
}

function failed(request: ApplyObjectRequest, error: unknown): AppliedObject {
  const { id } = request.target;
  if (isCutOff(error, request)) return { id, outcome: "waiting", ...outOfTime };
  return { id, outcome: "failed", failure: withRemedy(failureOf(error), request.target.object) };
}

function withRemedy(failure: ObjectFailure, object: ManifestObject): ObjectFailure {
  if (failure.class === "invalid") return withFields(failure, object);
  if (failure.class !== "immutable") return failure;
  const remedy =
    "the field cannot be changed: delete the object so that Starling creates it again, or restore the old value";
  return { ...failure, message: `${failure.message}; ${remedy}` };
}

const maxFields = 3;

/** The field for a text that is not base64. */
const textFields: Readonly<Record<string, string>> = { Secret: "stringData", ConfigMap: "data" };

/** The server does not say which field it could not decode, and its message about a Secret is withheld. */
function withFields(failure: ObjectFailure, object: ManifestObject): ObjectFailure {
  const fields = notBase64(object);
  if (fields.length === 0) return failure;
  const text = textFields[object.kind];
  const instead = text === undefined ? "" : `, or put the text under ${text}`;
  const remedy = `${fields.length === 1 ? "is" : "are"} not base64: encode the value${instead}`;
  return { ...failure, reason: "Invalid", message: `${foreignList(fields, maxFields)} ${remedy}` };
}

/**
 * Takes over the fields of kubectl and of earlier updates, and applies again, which removes the fields that the
 * manifest lacks. Without such a manager it makes no request.
 */
async function takeOver(
  client: ClusterClient,
  kind: KindInfo,
  { object, answer }: { readonly object: ManifestObject; readonly answer: WriteAnswer },
): Promise<WriteAnswer> {
  const key = { namespace: object.metadata.namespace ?? "", name: object.metadata.name };
  let latest = answer;
  for (let round = 0; round < maxTakeOvers; round += 1) {
    const patch = takeOverPatch(latest.object, object.apiVersion);
    if (patch === undefined) return latest;
    try {
      await client.patch(kind, key, patch);
    } catch (error) {
      const overtaken = error instanceof KubeError && (error.class === "invalid" || error.class === "conflict");
      if (!overtaken) throw error;
    }
    latest = await client.apply(kind, object);
  }
  return latest;
}

function applied(request: ApplyObjectRequest, kind: KindInfo, answer: WriteAnswer): AppliedObject {
  const { known, existing, target, clock } = request;
  const { object } = answer;
  const uid = stringAt(object, "metadata", "uid") ?? "";
  if (uid === "") return { id: target.id, outcome: "failed", failure: withoutUid(target.id) };
  const made = { ...entryOf(object, { id: target.id, version: kind.version }), ...expiringPart(target.object) };
  const entry = { ...made, ...completePart(made, object) };
  const health = computeStatus(object, {
    now: clock.now(),
    minimumGeneration: entry.generation,
    expectsStatus: kind.hasStatus && !isBuiltinGroup(kind.group),
  });
  const before = known ?? existingRecord(existing);
  return {
    id: target.id,
    outcome: answer.created ? "created" : holdsSame(before, entry) ? "unchanged" : "configured",
    entry,
    health,
    warnings: answer.warnings,
    ...(existing !== undefined && !isMember(existing, request.setId) ? { adopted: true } : {}),
  };
}

/** Without the uid, nothing could prove later that this object is the applied one. */
function withoutUid(id: ObjectId): ObjectFailure {
  const message = `the server's answer for ${describeObject(id)} has no uid; check what answers at the cluster's address`;
  return definiteFailure({ class: "malformed", reason: "AnswerMalformed", message, retryable: true });
}

/** The recorded object, or the existing one; empty when neither exists. */
type Before = { readonly [Field in keyof InventoryEntry]?: InventoryEntry[Field] | undefined };

function existingRecord(existing: KubeObject | undefined): Before {
  return { resourceVersion: stringAt(existing, "metadata", "resourceVersion") };
}

/** Compares two records of the same object. */
function holdsSame(before: Before, after: InventoryEntry): boolean {
  if (before.resourceVersion === after.resourceVersion) return true;
  return before.ownedHash === after.ownedHash && before.valuesHash === after.valuesHash;
}

function terminating(id: ObjectId, live: KubeObject): AppliedObject {
  const message = `${describeObject(id)} is being deleted${heldBy(live)}; Starling applies it again after the deletion`;
  return { id, outcome: "waiting", reason: "Terminating", message };
}

/**
 * A finished Job that removed itself must not run again at every sync, only when its manifest changes. A Job that was
 * lost is created again.
 */
async function hasExpired(client: ClusterClient, { target, known, clock }: ApplyObjectRequest): Promise<boolean> {
  if (known?.expiring === undefined || known.expiring !== digestOf(target.object)) return false;
  if (!hasRemovedItself(known, clock.now())) return false;
  const kind = await resolveKind(client, target.object);
  if (!("plural" in kind)) return false;
  return (await client.get(kind, target.id, { metadataOnly: true })) === undefined;
}

/** A kind may answer 404 for a moment after its definition says Established (kustomize-controller#98). */
const noMatchRetryDelaysMs = [100, 250, 500, 1000, 1500];

/** With the version, the server refuses the apply when anyone has written the object since, even only its status. */
function withVersion(object: ManifestObject, resourceVersion = ""): ManifestObject {
  return resourceVersion === "" ? object : { ...object, metadata: { ...object.metadata, resourceVersion } };
}

/** With this version, which no object has, the server creates a missing object and refuses an existing one. */
function overNothing(object: ManifestObject): ManifestObject {
  return withVersion(object, "1");
}

/** Retries over problems that pass by themselves or come from the server's own data. */
async function applyOverObstacles(
  { client, clock }: { readonly client: ClusterClient; readonly clock: SleepingClock },
  kind: KindInfo,
  object: ManifestObject,
): Promise<WriteAnswer> {
  let asked = object;
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await client.apply(kind, asked);
    } catch (error) {
      if (!(error instanceof KubeError)) throw error;
      const delayMs = noMatchRetryDelaysMs[attempt];
      if (error.class === "noMatch" && delayMs !== undefined && !isBuiltinGroup(kind.group)) await clock.sleep(delayMs);
      else if (error.class === "migrate" && attempt === 0) asked = await retagged(client, kind, object);
      else throw error;
    }
  }
}

/**
 * Entries of an older version in managedFields make the apply fail. Tags them with the version that is applied.
 * @returns the object with the new resourceVersion, when the old one was the expected one.
 */
async function retagged(client: ClusterClient, kind: KindInfo, object: ManifestObject): Promise<ManifestObject> {
  const { namespace = "", name, resourceVersion } = object.metadata;
  const key = { namespace, name };
  const live = await client.get(kind, key);
  const patch = live && retagPatch(live, object.apiVersion);
  if (patch === undefined) return object;
  const answer = await client.patch(kind, key, patch);
  const isAsExpected = resourceVersion === stringAt(live, "metadata", "resourceVersion");
  return isAsExpected ? withVersion(object, stringAt(answer.object, "metadata", "resourceVersion")) : object;
}
