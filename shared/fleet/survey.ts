/** Metrics of the fleet from the rows of Sources and owners: plain sums, without the clusters' own rows. */

import { nextForAll } from "#shared/fleet/rollout/order.ts";
import { deletionFailed } from "#shared/fleet/rollout/owner-status.ts";
import { later } from "#shared/fleet/rows/due.ts";
import type { OwnerRow, SourceRow } from "#shared/fleet/rows/object-rows.ts";
import type { RolloutStateRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isPollLate, staleAfterSeconds } from "#shared/fleet/sources/stale-source.ts";

/** States of targets that metrics distinguish. */
export const surveyedStates = ["ready", "drifted", "changing", "failed", "unreachable", "waiting"] as const;

export interface Survey {
  /** Clusters of all owners together: a cluster of two groups is counted twice. */
  readonly targets: Readonly<Record<(typeof surveyedStates)[number], number>>;
  /** Those of the unreachable ones that are in zones which are down: the alarms of the zones tell of them. */
  readonly inZones: number;
  /** Rollouts that only continue when a person acts. */
  readonly halted: number;
  readonly staleSources: number;
  /** Changes of clusters and templates that a guard withholds until a person approves or withdraws them. */
  readonly withheld: number;
  /** Age of the oldest rollout that a stage still has to take, and that nobody holds; 0 when every stage has the newest. */
  readonly oldestSeconds: number;
  /** Age of the oldest suspension; 0 when nothing is suspended. */
  readonly suspendedSeconds: number;
}

export const nothingSurveyed: Survey = {
  targets: { ready: 0, drifted: 0, changing: 0, failed: 0, unreachable: 0, waiting: 0 },
  inZones: 0,
  halted: 0,
  staleSources: 0,
  withheld: 0,
  oldestSeconds: 0,
  suspendedSeconds: 0,
};

/** Suspended Sources do not count. */
export function isStale({ operations, status, spec, createdAt }: SourceRow, now: Date): boolean {
  if (operations.suspended !== undefined) return false;
  const ready = status.conditions.find(({ type }) => type === "Ready");
  const failedSince = ready?.status === "False" ? ready.since : undefined;
  if (failedSince !== undefined && later(failedSince, staleAfterSeconds) <= now.toISOString()) return true;
  return isPollLate(status.attemptedAt ?? createdAt, spec, now);
}

function isHalted({ status }: OwnerRow): boolean {
  const { state, conditions } = status;
  return state === "Halted" || state === "Stalled" || conditions.some(({ reason }) => reason === deletionFailed);
}

/**
 * Whether a stage's current rollout is not the newest: only then the rollout state is read. A suspended owner does not
 * count, because its rollouts are meant to wait.
 */
export function isBehind({ operations, status: { rollout, stages = [] } }: OwnerRow): boolean {
  return (
    operations.suspended === undefined && rollout !== undefined && stages.some(({ current = 0 }) => current !== rollout)
  );
}

/** Age of the oldest rollout that the last stage still has to take. */
export function behindSeconds(
  rolloutState: Pick<RolloutStateRow, "stages" | "ledger" | "rejected">,
  now: Date,
): number {
  const next = nextForAll(rolloutState);
  return next === undefined ? 0 : Math.max(0, (now.getTime() - Date.parse(next.at)) / 1000);
}

export function withOwner(survey: Survey, row: OwnerRow): Survey {
  const { clusters, withheld = 0 } = row.status;
  const targets = { ...survey.targets };
  for (const state of surveyedStates) targets[state] += clusters?.[state] ?? 0;
  const halted = survey.halted + (isHalted(row) ? 1 : 0);
  return { ...survey, targets, halted, withheld: survey.withheld + withheld };
}

/** A suspended owner gets nothing newer, and nothing else reports that. */
export function withSuspend(survey: Survey, { operations: { suspended } }: SourceRow | OwnerRow, now: Date): Survey {
  if (suspended === undefined) return survey;
  const seconds = (now.getTime() - Date.parse(suspended.at)) / 1000;
  return { ...survey, suspendedSeconds: Math.max(survey.suspendedSeconds, seconds) };
}
