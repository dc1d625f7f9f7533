import { fleetVersionKeys, fleetVersionOf } from "#functions/rollout/fleet.ts";
import { allPast } from "#functions/rollout/ledger.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { templateSources } from "#shared/fleet/kinds/template-sources.ts";
import { legKey } from "#shared/fleet/rollout/legs.ts";
import { type DesiredPlan, desiredPlan, relationOf } from "#shared/fleet/rollout/plan.ts";
import { type Brake, brakeAmong } from "#shared/fleet/rows/brake-row.ts";
import { keys, type Subject } from "#shared/fleet/rows/keys.ts";
import type { FleetVersionRow, SubjectRow } from "#shared/fleet/rows/object-rows.ts";
import type { ContentRow, LegRow, UnitRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer, newerRowText, type Row, rowSchema } from "#shared/fleet/rows/row.ts";
import type { Table } from "#shared/ports.ts";

/** What grows with a subject's spec (clusters that it names, too), and not with its fleet. */
export interface Known {
  readonly subject: Subject;
  readonly row: SubjectRow;
  readonly unit: UnitRow;
  /** Those that stages are on or move to, and that one had passed which is no more; by number. */
  readonly contents: ReadonlyMap<number, ContentRow>;
  /** Those that are under way, and those that each stage passed last; by `legKey`. */
  readonly legs: ReadonlyMap<string, LegRow>;
  readonly desired: DesiredPlan;
  readonly brake: Brake;
  /** Of what the subject may select: another one, and members may be others. */
  readonly fleetVersion: string;
  /** The versions of the fleet's directory, where the subject goes by those. */
  readonly fleetParts: readonly FleetVersionRow[];
}

/** @returns undefined when the subject does not exist. @throws StarlingError `BrakeUnreadable` */
export async function readSubject(subject: Subject, ports: { readonly table: Table }): Promise<Known | undefined> {
  const first = await ports.table.getMany([
    keys.object(subject.namespace, subject.kind, subject.name),
    keys.unit(subject),
  ]);
  const row = first.find(isSubject);
  if (row === undefined) return undefined;
  const unit = unitFor(
    row,
    subject,
    first.find((candidate) => candidate.type === "Unit"),
  );
  const relation = relationOf(row);
  const sources = new Set(relation.templates.flatMap(templateSources));
  const refs = unit.stages.flatMap(({ moving, passed }) => [moving, passed].filter((leg) => leg !== undefined));
  const numbers = new Set([
    unit.former,
    ...unit.stages.flatMap(({ on, moving, bar }) => [on, moving?.content, bar?.above]),
  ]);
  const second = await ports.table.getMany(
    [
      ...[...sources].map((name) => keys.object(subject.namespace, "Source", name)),
      ...[...numbers.add(unit.last)].flatMap((number) => (number ? [keys.content(subject, number)] : [])),
      ...refs.map((leg) => keys.leg(subject, leg)),
      keys.brake,
      ...fleetVersionKeys(relation.clusters),
    ],
    { newer: "kept" },
  );
  // A cluster that only a newer version can read is passed by; anything else is needed to decide at all.
  const newer = second.filter(isNewer).find((row) => keys.fleet.parse(row) === undefined);
  if (newer !== undefined) throw new StarlingError(newerRowText(newer), { code: "NewerRow", retry: "permanent" });
  const reading = brakeAmong(second);
  if (!reading.ok) throw new StarlingError(reading.message, { code: "BrakeUnreadable", retry: "transient" });
  const found = second.filter((candidate) => candidate.type === "Source");
  const contents = second.filter((candidate) => candidate.type === "Content");
  const legs = second.filter((candidate) => candidate.type === "Leg");
  return {
    subject,
    row,
    unit,
    contents: new Map(contents.map((content) => [content.number, content])),
    legs: new Map(legs.map((leg) => [legKey(leg), leg])),
    brake: reading.brake,
    desired: desiredPlan(row, new Map(found.map((source) => [source.name, source]))),
    fleetVersion: fleetVersionOf(relation.clusters, second),
    fleetParts: second.filter((candidate) => candidate.type === "FleetVersion"),
  };
}

/** One that another object of the same name left goes on with its numbers, because clusters remember them. */
export function unitFor({ uid }: SubjectRow, subject: Subject, found: UnitRow | undefined): UnitRow {
  if (found?.uid === uid) return found;
  return {
    ...keys.unit(subject),
    type: "Unit",
    schema: rowSchema,
    version: found?.version ?? 0,
    subject,
    uid,
    last: found?.last ?? 0,
    seals: found?.seals ?? 0,
    stages: [],
    arrivals: { waiting: 0, changing: 0, failed: 0 },
    ledger: [],
    templates: [],
    membersVersion: 0,
    inputsVersion: 0,
    jobs: [],
    ...(found === undefined ? {} : allPast(found)),
  };
}

function isSubject(row: Row): row is SubjectRow {
  return row.type === "SyncGroup" || row.type === "Sync";
}
