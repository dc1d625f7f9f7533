import { StarlingError } from "#shared/base/errors.ts";
import { type DesiredPlan, desiredPlan, relationOf } from "#shared/fleet/rollout/plan.ts";
import { type Brake, brakeAmong } from "#shared/fleet/rows/brake-row.ts";
import { keys, type Subject } from "#shared/fleet/rows/keys.ts";
import type { SubjectRow } from "#shared/fleet/rows/object-rows.ts";
import type { HeadRow, RolloutRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { Row } from "#shared/fleet/rows/row.ts";
import type { Table } from "#shared/ports.ts";

/** Everything about a subject that does not depend on the size of its fleet. */
export interface Known {
  readonly subject: Subject;
  readonly row: SubjectRow;
  readonly head: HeadRow | undefined;
  /** The open rollout. */
  readonly rollout: RolloutRow | undefined;
  readonly desired: DesiredPlan;
  readonly brake: Brake;
}

/** @returns undefined when the subject does not exist. @throws StarlingError `BrakeUnreadable` */
export async function readSubject(subject: Subject, ports: { readonly table: Table }): Promise<Known | undefined> {
  const first = await ports.table.getMany([
    keys.object(subject.namespace, subject.kind, subject.name),
    keys.head(subject),
  ]);
  const row = first.find(isSubject);
  if (row === undefined) return undefined;
  const head = first.find((candidate) => candidate.type === "Head");
  const sources = new Set(relationOf(row).templates.map((template) => template.source));
  const second = await ports.table.getMany([
    ...[...sources].map((name) => keys.object(subject.namespace, "Source", name)),
    ...(head?.open === undefined ? [] : [keys.rollout(subject, head.open)]),
    keys.brake,
  ]);
  const reading = brakeAmong(second);
  if (!reading.ok) throw new StarlingError(reading.message, { code: "BrakeUnreadable", retry: "transient" });
  const found = second.filter((candidate) => candidate.type === "Source");
  return {
    subject,
    row,
    head,
    rollout: second.find((candidate) => candidate.type === "Rollout"),
    brake: reading.brake,
    desired: desiredPlan(row, new Map(found.map((source) => [source.name, source])), head),
  };
}

function isSubject(row: Row): row is SubjectRow {
  return row.type === "SyncGroup" || row.type === "Sync";
}
