import { defined } from "#shared/base/defined.ts";
import type { StatedReason } from "#shared/fleet/rows/stated-reason.ts";
import { reportedReason } from "#shared/kube/reasons.ts";
/** Computes the observed half of a Sync on a cluster from a worker's findings: pure functions. */

import { foreignText } from "#shared/base/foreign-text.ts";
import { compareText } from "#shared/base/text-order.ts";
import { backoffSeconds, later } from "#shared/fleet/rows/due.ts";
import {
  type Desired,
  intervalOf,
  isDenied,
  isReconciled,
  maxProblems,
  type ObjectProblem,
  type ObjectWarning,
  type Observed,
  type Phase,
  type SyncRow,
} from "#shared/fleet/rows/sync-row.ts";
import { maxMessage, syncConditions } from "#shared/fleet/sync/conditions.ts";
import type { Withheld } from "#shared/fleet/sync/withheld.ts";
import type { HealthStatus } from "#shared/kube/health/status.ts";
import type { ForeignObject } from "#shared/kube/membership.ts";
import { objectIdKey } from "#shared/kube/object-id.ts";
import type { Remembered } from "#shared/kube/parent-object.ts";

/** Seconds for which kstatus must report Failed, without interruption, before a Sync counts as Failed. */
const failedAfterSeconds = 60;
/**
 * Seconds between checks of objects that are not ready: they double from one second, because objects usually become
 * ready soon.
 */
const longestPollSeconds = 30;
const longestProbeSeconds = 300;
/** As long as the longest back-off. */
const longestAskedSeconds = 600;
/** Length limit for texts of a cluster; a row with all of them is far below DynamoDB's 400 KB. */
const maxReason = 100;
const maxObject = 700;
const keptForeign = 20;
/** Length of Kubernetes' names; objects with longer ones are counted, but not named. */
const maxName = 253;
const maxKeep = 200;

/** The finding of one operation on a Sync; fields that are left out stay as they were. */
export interface Finding {
  readonly phase: Phase;
  readonly reason: StatedReason;
  readonly message: string;
  readonly problems?: readonly ObjectProblem[];
  readonly objects?: Observed["objects"];
  /** Number of objects that this attempt has applied or deleted so far. */
  readonly done?: number;
  readonly applied?: Observed["applied"];
  readonly inventory?: string;
  readonly drift?: Observed["drift"];
  /** Warnings about the objects of this apply. */
  readonly warnings?: readonly ObjectWarning[];
  /** Empty when a check that would have found problems found none. */
  readonly leftAlone?: readonly ObjectProblem[];
  /** The cluster was compared with what was applied. */
  readonly inspected?: true;
  /** Everything that the comparison found was corrected, or only has to be reported: a `reconcile` needs no more. */
  readonly reconciled?: true;
  /** All drift that was found; empty when there is none any more. */
  readonly foreign?: readonly ForeignObject[];
  readonly rebuilt?: Observed["rebuilt"];
  /** The guard of the Sync's objects ended the attempt. */
  readonly guardedPrune?: Observed["guardedPrune"];
  /** Why a necessary write did not happen. */
  readonly withheld?: Withheld;
  /** Why not everything could be compared with what was applied. */
  readonly notCompared?: string;
  readonly failedSince?: string;
  readonly handledPrune?: number;
  /** No check happens before this time, unless something else is desired or somebody asks. */
  readonly backoffSecondsAfter?: number;
  /** Seconds for which the cluster asked for no requests; more than ten minutes are ignored. */
  readonly notBeforeSeconds?: number;
  /** The uid of the cluster that answered, when it was asked and is the expected one. */
  readonly clusterUid?: string;
  /** Token of the assignment that began in the cluster. */
  readonly claimed?: string;
  /** The obstacle: the cluster was given other assignments than these rows know. */
  readonly remembered?: Remembered;
}

/** Combines a finding with the observation before; `since`, `tries` and the next check follow from the two. */
export function observe(
  row: Pick<SyncRow, "desired" | "observed" | "reconcile">,
  found: Finding,
  at: { readonly now: Date; readonly fence: number },
): Observed {
  const finding = fitForRow(found);
  const now = at.now.toISOString();
  const { observed: before, desired } = row;
  const sameAttempt = before?.attempt === desired.attempt;
  const stays = sameAttempt && before.phase === finding.phase && before.reason === finding.reason;
  const tries = stays ? before.tries + 1 : 0;
  const leftAlone = finding.leftAlone ?? (sameAttempt ? (before.leftAlone ?? []) : []);
  const warnings = allWarnings(sameAttempt ? before.warnings : [], finding.warnings);
  const withheld = finding.withheld?.reason === "Suspended" ? finding.withheld.reason : undefined;
  const next = finding.backoffSecondsAfter ?? checkSeconds(finding, { desired, tries });
  const base = {
    attempt: desired.attempt,
    phase: finding.phase,
    reason: finding.reason,
    message: finding.message,
    startedAt: sameAttempt ? before.startedAt : now,
    since: stays ? before.since : now,
    at: now,
    tries,
    objects: countedForeign(finding, finding.objects ?? (sameAttempt ? before.objects : uncounted(before))),
    problems: finding.problems ?? [],
    fence: at.fence,
    conditions: syncConditions(row, { ...finding, leftAlone }, now),
  };
  const deniedAt = isDenied(base) ? now : sameAttempt ? before.deniedAt : undefined;
  return {
    ...base,
    ...(next === undefined ? {} : { nextAt: later(at.now, next) }),
    ...defined({
      readyAt: (sameAttempt ? before.readyAt : undefined) ?? (finding.phase === "Ready" ? now : undefined),
      progress: progressAfter(sameAttempt ? before.progress : undefined, finding, now),
      clusterUid: finding.clusterUid ?? before?.clusterUid,
      claimed: finding.phase === "Gone" ? undefined : (finding.claimed ?? before?.claimed),
      remembered: finding.remembered,
      applied: finding.applied ?? before?.applied,
      inventory: finding.inventory ?? before?.inventory,
      inspectedAt: finding.inspected ? now : sameAttempt ? before.inspectedAt : undefined,
      drift: finding.drift ?? before?.drift,
      withheld,
      guardedPrune: finding.guardedPrune,
      warnings: warnings.length === 0 ? undefined : warnings,
      leftAlone: leftAlone.length === 0 ? undefined : leftAlone,
      foreign: finding.foreign === undefined ? before?.foreign : namedForeign(finding.foreign),
      rebuilt: finding.rebuilt ?? before?.rebuilt,
      failedSince: finding.failedSince,
      deniedAt,
      handledPrune: finding.handledPrune ?? before?.handledPrune,
      handledReconcile: row.reconcile,
      owesReconcile: owesReconcile(row, finding) ? (true as const) : undefined,
    }),
  };
}

/** Only what exceeds everything that was seen of the attempt before counts as progress. */
function progressAfter(
  before: Observed["progress"],
  { done = 0, objects }: Finding,
  at: string,
): Observed["progress"] | undefined {
  const applied = Math.max(before?.applied ?? 0, done);
  const ready = Math.max(before?.ready ?? 0, objects?.ready ?? 0);
  const isMore = applied > (before?.applied ?? 0) || ready > (before?.ready ?? 0);
  return isMore ? { at, applied, ready } : before;
}

/** A freeze, a suspend or a silent cluster may prevent the requested check. */
function owesReconcile(row: Pick<SyncRow, "desired" | "observed" | "reconcile">, finding: Finding): boolean {
  const { action, apply } = row.desired;
  const isComparable = action === "apply" && apply.drift !== "off";
  const isDone = finding.reconciled !== undefined || finding.applied !== undefined;
  return isComparable && !isDone && !isReconciled(row);
}

/** Counts of an earlier attempt were about another rendering; foreign objects still count. */
function uncounted(before: Observed | undefined): Observed["objects"] {
  return { total: 0, ready: 0, failed: 0, foreign: before?.objects.foreign ?? 0 };
}

function countedForeign({ foreign }: Finding, objects: Observed["objects"]): Observed["objects"] {
  return foreign === undefined ? objects : { ...objects, foreign: foreign.length };
}

/**
 * Members come first, because they can be pruned. They are sorted by name, so that the row stays as it is while they
 * do.
 */
function namedForeign(found: readonly ForeignObject[]): readonly ForeignObject[] | undefined {
  const named = found
    .filter(({ id, uid }) => [...Object.values(id), uid].every((text: string) => text.length <= maxName))
    .sort((a, b) => Number(b.member) - Number(a.member) || compareText(objectIdKey(a.id), objectIdKey(b.id)));
  if (named.length === 0) return undefined;
  return named.slice(0, keptForeign).map(({ keep, ...object }) => ({
    ...object,
    ...(keep === undefined ? {} : { keep: foreignText(keep, maxKeep) }),
  }));
}

/** Texts of a cluster become short single lines here, whatever their way. */
function fitForRow(finding: Finding): Finding {
  const { problems = [] } = finding;
  return {
    ...finding,
    reason: reportedReason(foreignText(finding.reason, maxReason)),
    message: foreignText(finding.message, maxMessage),
    problems: fitProblems(problems),
    ...(finding.leftAlone === undefined ? {} : { leftAlone: fitProblems(finding.leftAlone) }),
    ...(finding.drift?.named === undefined
      ? {}
      : { drift: { ...finding.drift, named: fitProblems(finding.drift.named) } }),
  };
}

/** An attempt may take several runs, and each apply repeats its warnings. */
function allWarnings(
  before: readonly ObjectWarning[] = [],
  found: readonly ObjectWarning[] = [],
): readonly ObjectWarning[] {
  const fit = found.map(({ object, message }) => ({
    object: foreignText(object, maxObject),
    message: foreignText(message, maxMessage),
  }));
  const known = new Set(before.map(({ message }) => message));
  return [...before, ...fit.filter(({ message }) => !known.has(message))].slice(0, maxProblems);
}

function fitProblems(problems: readonly ObjectProblem[]): readonly ObjectProblem[] {
  return problems.slice(0, maxProblems).map(({ object, reason, message }) => ({
    object: foreignText(object, maxObject),
    reason: foreignText(reason, maxReason),
    message: foreignText(message, maxMessage),
  }));
}

function checkSeconds(
  { phase, notBeforeSeconds = 0 }: Finding,
  when: Parameters<typeof nextCheckSeconds>[1],
): number | undefined {
  const seconds = nextCheckSeconds(phase, when);
  return seconds === undefined ? undefined : Math.max(seconds, Math.min(notBeforeSeconds, longestAskedSeconds));
}

/** @returns undefined for phases that wait for their interval, or for the planner. */
function nextCheckSeconds(
  phase: Phase,
  { desired, tries }: { readonly desired: Desired; readonly tries: number },
): number | undefined {
  if (phase === "Applying") return Math.min(2 ** tries, 10);
  if (phase === "Verifying") return Math.min(2 ** tries, longestPollSeconds, intervalOf(desired));
  if (phase === "Retrying") return backoffSeconds(tries + 1);
  if (phase === "Unreachable") return Math.min(backoffSeconds(tries + 1), longestProbeSeconds);
  return undefined;
}

/** The health of all objects of a Sync, observed at one time. */
export interface SeenHealth {
  readonly total: number;
  readonly ready: number;
  readonly failed: number;
  readonly worst: HealthStatus;
  readonly problems: readonly ObjectProblem[];
}

/**
 * Ready when every object is; Failed when kstatus has reported it for long enough; otherwise Verifying, with the worst
 * object.
 */
export function healthFinding(row: Pick<SyncRow, "desired" | "observed">, health: SeenHealth, now: Date): Finding {
  const foreign = row.observed?.objects.foreign ?? 0;
  const objects = { total: health.total, ready: health.ready, failed: health.failed, foreign };
  if (health.worst === "Current") {
    return { phase: "Ready", reason: "Ready", message: `${health.total} objects ready`, objects, problems: [] };
  }
  const message = `${health.ready} of ${health.total} objects ready`;
  if (health.failed === 0)
    return { phase: "Verifying", reason: "NotReady", message, objects, problems: health.problems };
  const sameAttempt = row.observed?.attempt === row.desired.attempt;
  const failedSince = (sameAttempt ? row.observed?.failedSince : undefined) ?? now.toISOString();
  const long = later(failedSince, failedAfterSeconds) <= now.toISOString();
  return {
    phase: long ? "Failed" : "Verifying",
    reason: long ? "ObjectsFailed" : "NotReady",
    message,
    objects,
    problems: health.problems,
    failedSince,
  };
}
