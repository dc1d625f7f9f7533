/** What rows of Sources and subjects say of the fleet, for metrics: plain sums, for nobody reads the clusters' own. */
import { secondsOf } from "#shared/fleet/kinds/quantities.ts";
import { deletionFailed } from "#shared/fleet/rollout/owner-status.ts";
import { later } from "#shared/fleet/rows/due.ts";
import type { OwnerRow, SourceRow } from "#shared/fleet/rows/object-rows.ts";
import type { RolloutStateRow } from "#shared/fleet/rows/rollout-rows.ts";

/** Of a target, as far as metrics tell them apart. */
export const surveyedStates = ["ready", "drifted", "changing", "failed", "unreachable", "waiting"] as const;

export interface Survey {
  /** Clusters of all subjects together: one that two groups take is counted twice. */
  readonly targets: Readonly<Record<(typeof surveyedStates)[number], number>>;
  /** Rollouts that go on when a person has acted. */
  readonly halted: number;
  readonly staleSources: number;
  /** Of the oldest content that a stage still has to come to, and that nobody holds; 0 when every stage has the newest. */
  readonly oldestSeconds: number;
  /** Of what people have suspended, how long the longest has been; 0 when nothing is. */
  readonly suspendedSeconds: number;
}

export const nothingSurveyed: Survey = {
  targets: { ready: 0, drifted: 0, changing: 0, failed: 0, unreachable: 0, waiting: 0 },
  halted: 0,
  staleSources: 0,
  oldestSeconds: 0,
  suspendedSeconds: 0,
};

/** A Source that could not be looked at is nobody's business before: hosts are down for a while. */
const staleAfterSeconds = 3600;

/** Not those that people have suspended. */
export function isStale({ operations, status, spec, createdAt }: SourceRow, now: Date): boolean {
  if (operations.suspended !== undefined) return false;
  const ready = status.conditions.find(({ type }) => type === "Ready");
  const failedSince = ready?.status === "False" ? ready.since : undefined;
  const polledAt = later(status.attemptedAt ?? createdAt, secondsOf(spec.interval));
  const silentOrFailed = [failedSince, polledAt].filter((at) => at !== undefined);
  return silentOrFailed.some((at) => later(at, staleAfterSeconds) <= now.toISOString());
}

function isHalted({ status }: OwnerRow): boolean {
  const { state, conditions } = status;
  return state === "Halted" || state === "Stalled" || conditions.some(({ reason }) => reason === deletionFailed);
}

/**
 * Whether a stage is on another content than the newest: only then there is something to read of its unit. Not of one that
 * people have suspended, before that content came or after it: that it waits is what they want.
 */
export function isBehind({ operations, status: { rollout, stages = [] } }: OwnerRow): boolean {
  return (
    operations.suspended === undefined && rollout !== undefined && stages.some(({ current = 0 }) => current < rollout)
  );
}

/** Since when there is a content that its last stage to follow has not come to. */
export function behindSeconds({ stages, ledger }: Pick<RolloutStateRow, "stages" | "ledger">, now: Date): number {
  const least = Math.min(...stages.map(({ current = 0 }) => current));
  const next = ledger.filter(({ number }) => number > least).at(-1);
  return next === undefined ? 0 : Math.max(0, (now.getTime() - Date.parse(next.at)) / 1000);
}

export function withOwner(survey: Survey, row: OwnerRow): Survey {
  const { clusters } = row.status;
  const targets = { ...survey.targets };
  for (const state of surveyedStates) targets[state] += clusters?.[state] ?? 0;
  return { ...survey, targets, halted: survey.halted + (isHalted(row) ? 1 : 0) };
}

/** Nothing newer reaches anybody through what is suspended, and nobody is told of it otherwise. */
export function withSuspend(survey: Survey, { operations: { suspended } }: SourceRow | OwnerRow, now: Date): Survey {
  if (suspended === undefined) return survey;
  const seconds = (now.getTime() - Date.parse(suspended.at)) / 1000;
  return { ...survey, suspendedSeconds: Math.max(survey.suspendedSeconds, seconds) };
}
