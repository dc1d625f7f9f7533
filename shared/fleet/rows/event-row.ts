/** What happened, for people: written by `report`, kept for thirty days. */

import { digestOf, hexOf } from "#shared/base/digest.ts";
import { expiryOf } from "#shared/fleet/rows/expiry.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { isStalledPhase, type StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import { type Row, rowSchema } from "#shared/fleet/rows/row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { type AnyReason, reportedReason } from "#shared/kube/reasons.ts";

export interface EventRow extends Row {
  readonly type: "Event";
  readonly at: string;
  readonly severity: "info" | "error";
  readonly reason: string;
  readonly message: string;
  readonly cluster?: string;
  readonly rollout?: number;
  readonly revision?: string;
}

interface Happening {
  readonly about: { readonly namespace: string; readonly kind: string; readonly name: string };
  readonly at: string;
  /** Identifies the event, so that reporting it twice writes one row. */
  readonly identity: unknown;
  readonly said: Pick<EventRow, "severity" | "message" | "cluster" | "rollout" | "revision"> & {
    readonly reason: AnyReason;
  };
}

function eventRow(happening: Happening): EventRow {
  const { about, at, identity, said } = happening;
  const id = hexOf(digestOf({ identity, at })).slice(0, 12);
  return {
    ...keys.event(about, at, id),
    type: "Event",
    schema: rowSchema,
    version: 1,
    at,
    ...said,
    expiresAt: expiryOf(new Date(at)),
  };
}

/** Phases on the way are no news. */
const newsworthy: readonly string[] = ["Ready", "Failed", "Retrying", "Unreachable", "Gone"];

/** The events that report a Sync's present state. */
export function syncEvents(row: SyncRow): EventRow[] {
  const { observed, desired, cluster } = row;
  if (observed === undefined) return [];
  const about = { namespace: row.namespace, kind: "Sync", name: row.name };
  const common = { cluster, rollout: desired.rollout, revision: desired.revision };
  const events: EventRow[] = [];
  if (newsworthy.includes(observed.phase)) {
    const [worst] = observed.problems;
    const detail =
      worst === undefined
        ? observed.message
        : [worst.object, worst.reason, worst.message].filter((part) => part !== "").join(": ");
    events.push(
      eventRow({
        about,
        at: observed.since,
        identity: [row.uid, observed.attempt, observed.phase, observed.reason],
        said: {
          ...common,
          severity: observed.phase === "Ready" || observed.phase === "Gone" ? "info" : "error",
          reason: reportedReason(observed.reason),
          message: detail,
        },
      }),
    );
  }
  if (observed.drift !== undefined && observed.drift.objects > 0) {
    const { at, objects, corrected } = observed.drift;
    const [leftAlone] = observed.leftAlone ?? [];
    const had = `${objects} ${objects === 1 ? "object" : "objects"} had drifted${corrected ? ", put back" : ""}`;
    const said = {
      ...common,
      severity: corrected ? "info" : "error",
      reason: corrected ? "DriftCorrected" : "DriftDetected",
      message: leftAlone === undefined || corrected ? had : `${leftAlone.object}: ${leftAlone.message}`,
    } as const;
    events.push(eventRow({ about, at, identity: [row.uid, "drift"], said }));
    // The lists of events are those of groups and of Syncs that people wrote.
    if (!corrected && row.owner.kind === "SyncGroup") {
      const reported = { ...said, message: `${row.name}: ${said.message}` };
      events.push(eventRow({ about: row.owner, at, identity: [row.uid, "drift", "group"], said: reported }));
    }
  }
  if (observed.rebuilt !== undefined) {
    const { at, message, foreign } = observed.rebuilt;
    const severity = foreign === 0 ? "info" : "error";
    const said = { ...common, severity, reason: "InventoryRebuilt", message } as const;
    events.push(eventRow({ about, at, identity: [row.uid, "rebuilt"], said }));
  }
  return events;
}

/**
 * The events of a stage run: the begin of each phase, and the newest transitions. A transition that was reported before
 * makes the same row again.
 */
export function stageRunEvents(row: StageRunRow): EventRow[] {
  const { owner, rollout, stage, snapshot, transitions } = row;
  const reported = transitions.filter(
    ({ phase }, index) => index >= transitions.length - 3 || phase !== transitions[index - 1]?.phase,
  );
  return reported.map((transition) =>
    eventRow({
      about: { namespace: owner.namespace, kind: owner.kind, name: owner.name },
      at: transition.at,
      identity: [rollout, stage, snapshot, transition.phase, transition.reason, transition.message],
      said: {
        severity: isStalledPhase(transition.phase) ? "error" : "info",
        reason: `Rollout${transition.phase}`,
        message: `${owner.name}-${rollout}: ${transition.message}`,
        rollout: rollout,
      },
    }),
  );
}
