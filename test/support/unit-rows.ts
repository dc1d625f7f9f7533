import { noTargets } from "#shared/fleet/rollout/legs.ts";
import { keys, type Subject } from "#shared/fleet/rows/keys.ts";
import type { LegRow, UnitRow, UnitStage } from "#shared/fleet/rows/rollout-rows.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";

const subject: Subject = { namespace: "shop", kind: "SyncGroup", name: "web" };
const at = "2026-11-21T08:00:00.000Z";

/** A leg of content 1 through `all`; whatever of its counts is not said is none. */
export function legOfUnit({
  counts,
  ...more
}: Omit<Partial<LegRow>, "counts"> & { readonly counts?: Partial<LegRow["counts"]> }): LegRow {
  const ref = { content: more.content ?? 1, stage: more.stage ?? "all", seal: more.seal ?? 0 };
  const all = { ...noTargets, ...counts };
  return {
    ...keys.leg(subject, ref),
    ...ref,
    type: "Leg",
    schema: rowSchema,
    version: 1,
    subject,
    phase: "Moving",
    reason: "Moving",
    message: "",
    size: Object.values(all).reduce((sum, count) => sum + count, 0),
    pages: [],
    membersVersion: 1,
    next: 0,
    rendering: [],
    aside: [],
    returned: [],
    unrendered: [],
    preexistingFailures: 0,
    failures: [],
    away: [],
    startedAt: at,
    transitions: [],
    ...more,
    counts: all,
  };
}

export function stageOfUnit(name: string, more: Partial<UnitStage> = {}): UnitStage {
  return { name, members: 1, changing: 0, failedArrivals: 0, ...more };
}

export function unitOf(stages: readonly UnitStage[], more: Partial<UnitRow> = {}): UnitRow {
  return {
    ...keys.unit(subject),
    type: "Unit",
    schema: rowSchema,
    version: 1,
    subject,
    uid: "uid",
    last: 0,
    stages,
    arrivals: { waiting: 0, changing: 0, failed: 0 },
    ledger: [],
    templates: [],
    membersVersion: 1,
    inputsVersion: 0,
    jobs: [],
    seals: 0,
    ...more,
  };
}
