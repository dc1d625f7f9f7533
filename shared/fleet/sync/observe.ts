import { defined } from "#shared/base/defined.ts";
import type { StatedReason } from "#shared/fleet/rows/stated-reason.ts";
import { reportedReason } from "#shared/kube/reasons.ts";
/** The observed half of a Sync on a cluster: pure functions from what the worker saw to what it writes. */

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

/** kstatus must say Failed for so long, without interruption, before a Sync counts as Failed. */
const failedAfterSeconds = 60;
/** Between looks at objects that are not ready: doubling from one second, as readiness usually comes soon. */
const longestPollSeconds = 30;
const longestProbeSeconds = 300;
/** As long as the longest back-off. */
const longestAskedSeconds = 600;
/** Of what a cluster says; a row with all of it is far below DynamoDB's 400 KB. */
const maxReason = 100;
const maxObject = 700;
const keptForeign = 20;
/** What Kubernetes gives; longer ones are counted, and cannot be named. */
const maxName = 253;
const maxKeep = 200;

/** What one look at a Sync came to; what is left out stays as it was. */
export interface Finding {
  readonly phase: Phase;
  readonly reason: StatedReason;
  readonly message: string;
  readonly problems?: readonly ObjectProblem[];
  readonly objects?: Observed["objects"];
  /** Objects that this attempt has applied so far, or taken away. */
  readonly done?: number;
  readonly applied?: Observed["applied"];
  readonly inventory?: string;
  readonly drift?: Observed["drift"];
  /** Of what was applied in this look. */
  readonly warnings?: readonly ObjectWarning[];
  /** Empty: none are, after a look that would have found them. */
  readonly leftAlone?: readonly ObjectProblem[];
  /** What is in the cluster was compared with what was applied. */
  readonly inspected?: true;
  /** What was found by that, if anything, was put back or is only to be told of: a `reconcile` wants no more. */
  readonly reconciled?: true;
  /** All that was found; none: there are none any more. */
  readonly foreign?: readonly ForeignObject[];
  readonly rebuilt?: Observed["rebuilt"];
  /** Why something was not written that should be. */
  readonly withheld?: Withheld;
  /** Why not everything could be compared with what was applied. */
  readonly notCompared?: string;
  readonly failedSince?: string;
  readonly handledPrune?: number;
  /** Nobody looks before, unless something else is wanted or somebody asks. */
  readonly backoffSecondsAfter?: number;
  /** The cluster asked to be left alone for so long; it is believed for ten minutes. */
  readonly notBeforeSeconds?: number;
  /** The uid of the cluster that answered, when it was asked and is the one it is to be. */
  readonly clusterUid?: string;
  /** Token of the assignment that was begun in the cluster. */
  readonly claimed?: string;
  /** What forbids it: the cluster was given other assignments than these rows know. */
  readonly remembered?: Remembered;
}

/** Writes a finding over what was observed before; `since`, `tries` and the next look follow from the two. */
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

/** Only what goes beyond all that was seen of the attempt before is progress: what comes and goes is none. */
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

/** A freeze, a suspend or a silent cluster may keep a look from what was asked of it. */
function owesReconcile(row: Pick<SyncRow, "desired" | "observed" | "reconcile">, finding: Finding): boolean {
  const { action, apply } = row.desired;
  const isComparable = action === "apply" && apply.drift !== "off";
  const isDone = finding.reconciled !== undefined || finding.applied !== undefined;
  return isComparable && !isDone && !isReconciled(row);
}

/** What was counted in an earlier attempt was of another rendering; what belongs to others still does. */
function uncounted(before: Observed | undefined): Observed["objects"] {
  return { total: 0, ready: 0, failed: 0, foreign: before?.objects.foreign ?? 0 };
}

function countedForeign({ foreign }: Finding, objects: Observed["objects"]): Observed["objects"] {
  return foreign === undefined ? objects : { ...objects, foreign: foreign.length };
}

/** Members first: they can be pruned. The order is that of their names, so that the row stays as it is while they do. */
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

/** Words of a cluster end here as short lines, whoever they came through. */
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

/** An attempt may take several runs, and each apply says the same again. */
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

/** The health of all objects of a Sync, seen at one time. */
export interface SeenHealth {
  readonly total: number;
  readonly ready: number;
  readonly failed: number;
  readonly worst: HealthStatus;
  readonly problems: readonly ObjectProblem[];
}

/** Ready when every object is; Failed when kstatus has said so long enough; else Verifying, with the worst object. */
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
