/** Works on one Sync on one cluster: chooses the operation that it needs, and observes the result. */

import { isElsewhere } from "#functions/apply/cluster/is-elsewhere.ts";
import type { WorkerPorts } from "#functions/apply/cluster/worker-ports.ts";
import { type HeldLease, LeaseLost } from "#functions/apply/lease/held-lease.ts";
import { type Reading, WriteGate, WriteWithheld } from "#functions/apply/lease/write-gate.ts";
import { applySync } from "#functions/apply/operations/apply-sync.ts";
import { deleteSync } from "#functions/apply/operations/delete-sync.ts";
import { inspectSync } from "#functions/apply/operations/inspect-sync.ts";
import { probeSync } from "#functions/apply/operations/probe-sync.ts";
import { pruneAccepted } from "#functions/apply/operations/prune-accepted.ts";
import { verifySync } from "#functions/apply/operations/verify-sync.ts";
import type { Operation, OperationContext, OperationResult } from "#functions/apply/steps/operation.ts";
import { nameOwners, Siblings } from "#functions/apply/steps/siblings.ts";
import { pausedFinding, withheldFinding } from "#functions/apply/steps/withheld-finding.ts";
import { yieldsTheCheck } from "#functions/apply/worker/routine-yields.ts";
import { defined } from "#shared/base/defined.ts";
import { errorCode, errorMessage, StarlingError } from "#shared/base/errors.ts";
import { isOwnFault } from "#shared/base/own-fault.ts";
import { syncFields } from "#shared/fleet/log-fields.ts";
import { clusterLabels } from "#shared/fleet/rows/cluster-entry.ts";
import { hasCome } from "#shared/fleet/rows/due.ts";
import { type Freeze, freezeOver } from "#shared/fleet/rows/freezes-row.ts";
import { mustBeRemembered, tokensOf } from "#shared/fleet/rows/lineage.ts";
import { isIdle, mayBegin, nextCheck } from "#shared/fleet/rows/next-work.ts";
import { type ClusterRow, clusterIdentity, type OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import { suspendedText } from "#shared/fleet/rows/suspension.ts";
import {
  type Held,
  holdOf,
  isAway,
  isHeldBack,
  isInspectionDue,
  isOfAnother,
  isPruneAsked,
  isTooLate,
  type Observed,
  type Paused,
  type SyncRow,
} from "#shared/fleet/rows/sync-row.ts";
import { asLastApplied } from "#shared/fleet/sync/last-applied.ts";
import { observe } from "#shared/fleet/sync/observe.ts";
import { type ClusterContact, isSeenLongAgo, seenCluster } from "#shared/fleet/sync/seen-cluster.ts";
import { frozenBy, pausedBy, type Withheld, withheldFrom } from "#shared/fleet/sync/withheld.ts";
import { isOfCredentials, isOfServiceAway } from "#shared/kube/engine/credential-codes.ts";
import { isCutOff, outOfTime } from "#shared/kube/engine/own-deadline.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import type { SyncClaim } from "#shared/kube/parent-object.ts";
import { reportedReason } from "#shared/kube/reasons.ts";

export interface SyncContext {
  readonly cluster: ClusterRow;
  readonly owner: OwnerRow | undefined;
  /** All Syncs of the cluster. */
  readonly syncs: readonly SyncRow[];
  readonly lease: HeldLease;
  readonly deadline: Date;
  /** For the first turn, the rows by which it was chosen. */
  readonly read?: Reading;
  readonly ports: WorkerPorts;
}

export interface SyncOutcome {
  /** The row that was worked on; newer than the given one, if there was a newer one. */
  readonly row: SyncRow;
  /** Absent when nothing was checked. */
  readonly observed?: Observed;
  /** The freeze that kept it from writing. */
  readonly held?: Held;
  /** Hint for its worker; absent when unknown. */
  readonly waitedSeconds?: number;
  /** The cluster's row with the version that was read, when facts about the cluster changed. */
  readonly cluster?: { readonly row: ClusterRow; readonly version: number };
}

/** The facts at the beginning of a turn. */
type Basis = Pick<SyncContext, "cluster" | "owner"> & { readonly row: SyncRow };

interface Check extends Basis {
  readonly operation: Operation;
  /** The assignment that the operation is about, when it is not the newest one. */
  readonly about?: SyncRow;
  /** The reason why nothing may be written to the cluster. */
  readonly withheld?: Withheld;
}

/** @returns undefined when nothing has to be done now: the owner is suspended, and nothing can be checked. */
export async function workSync(stored: SyncRow, context: SyncContext): Promise<SyncOutcome | undefined> {
  const { ports, lease } = context;
  const gate = new WriteGate(stored, lease, ports);
  const given: Basis = { row: stored, cluster: context.cluster, owner: context.owner };
  const isPaused = stored.paused !== undefined;
  if (!isPaused && !writesAtOnce(verbOf(given, ports.clock.now()))) return check(given, gate, context);
  try {
    if (isPaused) return await checkPaused(given, { paused: stored.paused, gate }, context);
    const standing = await gate.begin(context.read);
    const { row, owner, freezeState } = standing;
    const now = ports.clock.now();
    if (row === undefined || standing.cluster === undefined || isEarly(row, now) || isTooLate(row, now))
      return undefined;
    // It moved during this work: its rows stay due for the workers of its new zone.
    if (isElsewhere(standing.cluster, ports.zone)) return undefined;
    const cluster = newerOf(context.cluster, standing.cluster);
    if (row.paused !== undefined)
      return await checkPaused({ row, cluster, owner }, { paused: row.paused, gate }, context);
    const freeze = freezeOver(freezeState, clusterLabels(cluster), now);
    const basis: Basis = { row, cluster, owner };
    const why = withheldFrom(row.desired.attempt, standing, now);
    if (why?.reason === "Withdrawn") {
      const found = withheldFinding("nothing is deleted", why);
      return { row, observed: observe(row, found, { now, fence: lease.lease.fence }) };
    }
    const isHeld = freeze !== undefined && writesAtOnce(verbOf(basis, now)) && !isSuspended(owner);
    return isHeld
      ? await checkHeld(basis, { withheld: frozenBy(freeze), gate }, context)
      : await check(basis, gate, context);
  } catch (error) {
    if (!(error instanceof StarlingError) || isOwnFault(error)) throw error;
    const result: OperationResult = { phase: "Retrying", reason: reportedReason(error.code), message: error.message };
    return { row: stored, observed: observe(stored, result, { now: ports.clock.now(), fence: lease.lease.fence }) };
  }
}

/** The Sync is forgotten, or must not begin yet: the assignment may be newer than the one that was due. */
function isEarly(row: SyncRow, now: Date): boolean {
  const { desired, observed } = row;
  return desired.action === "orphan" || (observed?.attempt !== desired.attempt && !mayBegin(row, now));
}

async function check(basis: Basis, gate: WriteGate, context: SyncContext): Promise<SyncOutcome | undefined> {
  const now = context.ports.clock.now();
  const suspended = basis.owner?.operations.suspended;
  const operation = verbOf(basis, now);
  if (suspended === undefined || operation === probeSync) return carryOut({ ...basis, operation }, gate, context);
  const held = heldCheck(basis, { reason: "Suspended", message: suspendedText(suspended) }, now);
  return held === undefined ? undefined : carryOut(held, gate, context);
}

/**
 * A write waits for the end of a freeze, or for the turn that the planner gives after one. The worker still checks what
 * was applied before.
 */
async function checkHeld(
  basis: Basis,
  { withheld, gate }: { readonly withheld?: Withheld; readonly gate: WriteGate },
  context: SyncContext,
): Promise<SyncOutcome> {
  const now = context.ports.clock.now();
  const check = heldCheck(basis, withheld, now);
  const outcome = check === undefined ? {} : await carryOut(check, gate, context);
  const held = withheld?.reason === "Frozen" ? { held: heldFor(basis.row, withheld.freeze, now) } : {};
  return { ...outcome, row: basis.row, ...held };
}

/** Checks what was applied, also by an earlier attempt; when nothing was applied, checks whether the cluster answers. */
async function checkPaused(
  basis: Basis,
  { paused, gate }: { readonly paused: Paused; readonly gate: WriteGate },
  context: SyncContext,
): Promise<SyncOutcome> {
  const { row, cluster } = basis;
  const withheld = pausedBy(row, paused);
  if (paused.zone !== undefined) return carryOut({ ...basis, operation: probeSync, withheld }, gate, context);
  // Neither a closed window, nor a cordon, nor a skip keeps anybody from correcting drift.
  if (isHeldBack(paused)) return checkHeld(basis, { gate }, context);
  if (paused.freeze !== undefined) {
    const freeze = freezeOver((await gate.read()).freezeState, clusterLabels(cluster), context.ports.clock.now());
    return checkHeld(basis, { withheld: freeze === undefined ? withheld : frozenBy(freeze), gate }, context);
  }
  const applied = asLastApplied(row);
  if (applied === undefined || isOfAnother(row, clusterIdentity(cluster))) {
    return carryOut({ ...basis, operation: probeSync, withheld }, gate, context);
  }
  // A freeze may last, unlike a suspend: a requested check counts as done.
  const about = { ...applied, ...defined({ reconcile: row.reconcile }) };
  const operation = routineCheck(about, context.ports.clock.now());
  return carryOut({ ...basis, about, operation, withheld }, gate, context);
}

/**
 * Checks what was applied last, when the check is due, and writes nothing to the cluster while that is withheld. When
 * nothing was applied and the cluster did not answer, it checks whether the cluster answers.
 */
function heldCheck(basis: Basis, withheld: Withheld | undefined, now: Date): Check | undefined {
  const { row, cluster } = basis;
  const about = asLastApplied(row);
  if (about === undefined)
    return isAway(row) && hasCome(nextCheck(row), now)
      ? { ...basis, operation: probeSync, ...defined({ withheld }) }
      : undefined;
  if (isOfAnother(about, clusterIdentity(cluster))) return undefined;
  // The Sync is checked together with the others of its cluster.
  const isTurn = isIdle(row) || hasCome(nextCheck(about), now);
  return isTurn ? { ...basis, about, operation: routineCheck(about, now), ...defined({ withheld }) } : undefined;
}

async function carryOut(check: Check, gate: WriteGate, context: SyncContext): Promise<SyncOutcome> {
  const { cluster, operation, withheld, about = check.row } = check;
  const { ports, lease, deadline } = context;
  const clusterUid = clusterIdentity(cluster);
  const row = isOfAnother(about, clusterUid) ? withoutObserved(about) : about;
  const { fence } = lease.lease;
  const claim: SyncClaim = {
    installationId: ports.installation,
    syncNamespace: row.namespace,
    syncName: row.name,
    syncUid: row.uid,
    attempt: row.desired.attempt,
    fence,
    revision: row.desired.revision,
    token: row.desired.token,
    knownTokens: tokensOf(row).filter((token) => token !== row.desired.token),
    acceptedToken: row.recovered?.remembered.token,
    mayBeNew: !mustBeRemembered(row),
    ...(row.observed?.inventory === undefined ? {} : { inventory: row.observed.inventory }),
    ...defined({ renderDigest: row.desired.renderDigest }),
  };
  const siblings = new Siblings(row, ports);
  const asked = { row, claim, clusterUid, deadline, ports, gate, siblings, ...defined({ withheld }) };
  const { result: given, contact } = await run(operation, asked, cluster);
  const found = nameOwners(given, context.syncs);
  const paused = [withheld, found.withheld].find((why) => why?.reason === "Paused");
  const isNewest = row.desired.attempt === check.row.desired.attempt;
  const before = row.observed?.attempt === row.desired.attempt ? row.observed : undefined;
  const result = paused !== undefined && isNewest ? pausedFinding(found, paused, before) : found;
  const now = ports.clock.now();
  const seen = seenCluster(cluster, { result, now, ...defined({ contact }) });
  return {
    row: check.row,
    observed: observe(row, result, { now, fence }),
    ...(result.withheld?.reason === "Frozen" ? { held: heldFor(row, result.withheld.freeze, now) } : {}),
    ...(seen === undefined ? {} : { cluster: { row: seen, version: cluster.version } }),
  };
}

/** Includes what this worker observed of the cluster, although it is not written yet. */
function newerOf(known: ClusterRow, read: ClusterRow): ClusterRow {
  return read.version > known.version ? read : known;
}

function heldFor(row: SyncRow, { name, by, reason, until }: Freeze, now: Date): Held {
  const at = now.toISOString();
  const before = holdOf(row);
  const since = before?.name === name ? before.since : at;
  return { name, by, reason, ...defined({ until }), attempt: row.desired.attempt, since, at };
}

export function isSuspended(owner: OwnerRow | undefined): boolean {
  return owner?.operations.suspended !== undefined;
}

function withoutObserved({ observed: _observed, ...row }: SyncRow): SyncRow {
  return row;
}

/** Forgets what another cluster held; an attempt for that cluster does not begin here out of turn. */
function verbOf(basis: Basis, now: Date): Operation {
  const { row, cluster } = basis;
  if (!isOfAnother(row, clusterIdentity(cluster))) return verbFor(basis, now);
  const begun = row.observed?.attempt === row.desired.attempt;
  return begun ? probeSync : verbFor({ row: withoutObserved(row) }, now);
}

/** Whether the turn begins with a write, if nothing forbids it. */
export function isWritten(row: SyncRow, cluster: ClusterRow, now: Date): boolean {
  return row.paused === undefined && writesAtOnce(verbOf({ row, cluster, owner: undefined }, now));
}

/** These operations write whatever they find; a check that finds nothing to correct costs no more than before. */
function writesAtOnce(operation: Operation): boolean {
  return operation === applySync || operation === deleteSync || operation === pruneAccepted;
}

/** Whether the operation mostly reads. */
function isCheckOperation(operation: Operation): boolean {
  return operation === inspectSync || operation === verifySync || operation === probeSync;
}

function verbFor({ row }: Pick<Basis, "row">, now: Date): Operation {
  const { desired, observed } = row;
  // The turn of the Sync has ended: only the planner gives another one.
  if (isAway(row) && observed?.readyAt === undefined) return probeSync;
  if (desired.action === "delete") return deleteSync;
  if (observed?.attempt !== desired.attempt) return applySync;
  // After everything was applied and pruned, only changes have to be corrected.
  if (observed.applied?.attempt !== desired.attempt) return applySync;
  // Drift under a freeze or a suspend is compared again, and corrected after its end.
  if (holdOf(row) !== undefined || observed.withheld !== undefined) return inspectSync;
  if (isPruneAsked(row)) return pruneAccepted;
  return routineCheck(row, now);
}

/** The inspection of a Sync that was applied whole. */
function routineCheck(row: SyncRow, now: Date): Operation {
  const { observed } = row;
  if (observed?.phase !== "Verifying") return inspectSync;
  return isInspectionDue(row, now) ? inspectSync : verifySync;
}

/** The result of an operation, and the cluster's identity as it was seen meanwhile. */
interface Run {
  readonly result: OperationResult;
  /** Absent when the cluster was not reached, or not asked. */
  readonly contact?: ClusterContact;
}

/** Runs an operation; an error that ends it becomes a finding. */
async function run(operation: Operation, context: Omit<OperationContext, "client">, cluster: ClusterRow): Promise<Run> {
  const { clock } = context.ports;
  try {
    const client = await context.ports.connector.connect(cluster, context.deadline);
    const { withheld, gate, row } = context;
    const permit = async () => {
      if (withheld !== undefined) throw new WriteWithheld(withheld);
      await gate.permit(row.desired.attempt);
    };
    const result = await operation({ ...context, client: client.guardedBy(permit) });
    if (result.reason === "IdentityMismatch") context.ports.connector.distrust(cluster);
    if (result.phase === "Unreachable") return { result };
    const version = isSeenLongAgo(cluster, { result, now: clock.now() }) ? await client.serverVersion() : undefined;
    const address = context.ports.newAddress?.(cluster);
    return { result, contact: { uid: result.clusterUid, version, address } };
  } catch (error) {
    if (error instanceof LeaseLost || yieldsTheCheck(error) || isOwnFault(error)) throw error;
    if (error instanceof WriteWithheld) return { result: withheldFinding("cut off", error.why), contact: {} };
    if (error instanceof KubeError) {
      if (isCutOff(error, { clock, deadline: context.deadline })) return { result: cutOff(operation, context.row) };
      const result = unansweredFinding(error, cluster);
      return { result, ...(result.phase === "Unreachable" ? {} : { contact: {} }) };
    }
    return { result: defectFinding(error, context) };
  }
}

/**
 * The worker's own deadline ended a request: that tells nothing about the cluster, and is no error to report. The Sync
 * keeps its phase, except `Ready`, which was not observed; nothing is applied because of this. A cluster that is new,
 * and of which nothing was observed, still has to answer.
 */
function cutOff(operation: Operation, { observed }: SyncRow): OperationResult {
  if (!isCheckOperation(operation)) return { phase: "Applying", ...outOfTime };
  const before = observed?.phase ?? "Unreachable";
  return { phase: before === "Ready" ? "Verifying" : before, ...outOfTime };
}

/**
 * A failure on Starling's side of the connection. Without credentials the cluster is not reached: neither it nor the
 * assignment is at fault. An internal error is tried again, and its log has the details.
 */
function defectFinding(error: unknown, context: Omit<OperationContext, "client">): OperationResult {
  if (error instanceof StarlingError) {
    const tried = error.retry === "transient" ? "Retrying" : "Failed";
    const phase = isOfCredentials(error.code) || isOfServiceAway(error.code) ? "Unreachable" : tried;
    return { phase, reason: reportedReason(error.code), message: error.message };
  }
  context.ports.log.error("a sync met a defect", {
    ...syncFields(context.row),
    error: errorMessage(error),
  });
  return {
    phase: "Retrying",
    reason: reportedReason(errorCode(error)),
    message: "an internal error; the log of apply has it",
  };
}

/**
 * The client repeated requests without an answer: a cluster that is silent all that time is unreachable, whatever
 * happened to the connections (resets of a dead load balancer, timeouts of a dropped route).
 */
function unansweredFinding(error: KubeError, { name }: ClusterRow): OperationResult {
  const silent = error.status === undefined && error.class === "transient";
  const away = silent || error.class === "unreachable" || error.class === "auth";
  if (away)
    return {
      phase: "Unreachable",
      reason: error.class === "auth" ? "Unauthorized" : "Unreachable",
      message: error.message,
    };
  const phase = error.verdict.retryable ? "Retrying" : "Failed";
  const asked = defined({ notBeforeSeconds: error.retryAfterSeconds });
  return { phase, reason: reportedReason(error.reason), message: `cluster ${name}: ${error.message}`, ...asked };
}
