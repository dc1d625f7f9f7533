import { readDistinct } from "#functions/api/wanted-renderings.ts";
import { allItems } from "#shared/base/all-pages.ts";
import { defined } from "#shared/base/defined.ts";
import { type LackingFacts, lackingState, syncsFor } from "#shared/fleet/api/lacking.ts";
import { lackingSyncObject } from "#shared/fleet/api/lacking-sync.ts";
import type { SyncObject } from "#shared/fleet/api/objects.ts";
import { legOf } from "#shared/fleet/rollout/feed.ts";
import { legKey } from "#shared/fleet/rollout/legs.ts";
import { relationOf, stageOf } from "#shared/fleet/rollout/plan.ts";
import { keys, ranges, type Subject } from "#shared/fleet/rows/keys.ts";
import type { FleetRow, SubjectRow } from "#shared/fleet/rows/object-rows.ts";
import type { UnitRow, UnitStage } from "#shared/fleet/rows/rollout-rows.ts";
import { keyText } from "#shared/fleet/rows/row.ts";
import type { Table } from "#shared/ports.ts";

export interface LackingFilter {
  readonly clusters: readonly FleetRow[];
  /** By `keyText` of its row: those that are there, whatever they hold. */
  readonly present: ReadonlySet<string>;
  /** Only of this one. */
  readonly namespace?: string | undefined;
}

/** A subject and a cluster that it selects, with the names of what is not there. */
interface Gap {
  readonly subject: SubjectRow;
  readonly cluster: FleetRow;
  readonly names: readonly string[];
}

/**
 * What clusters are to have by the specs of all subjects, and nothing was assigned of. Every subject is read once; only of
 * clusters that lack something their targets and arrivals are.
 */
export async function lackingSyncs(table: Table, filter: LackingFilter): Promise<readonly SyncObject[]> {
  const subjects = await subjectsIn(table, filter.namespace);
  const gaps = subjects.flatMap((subject) =>
    filter.clusters.flatMap((cluster): Gap | readonly never[] => {
      const { namespace } = subject;
      const names = syncsFor(subject, cluster).filter(
        (name) => !filter.present.has(keyText(keys.sync(cluster.name, namespace, name))),
      );
      return names.length === 0 ? [] : { subject, cluster, names };
    }),
  );
  if (gaps.length === 0) return [];
  const factsOf = await readFacts(table, gaps);
  return gaps.flatMap((gap) => {
    const facts = factsOf(gap);
    return gap.names.flatMap((name) => {
      const lacking = lackingState(name, facts);
      return lacking === undefined ? [] : lackingSyncObject(gap.subject, { cluster: gap.cluster.name, name, lacking });
    });
  });
}

async function subjectsIn(table: Table, namespace: string | undefined): Promise<readonly SubjectRow[]> {
  const range = ranges.subjects(namespace);
  const entries = await Array.fromAsync(allItems((start) => table.query({ ...range, newer: "kept", ...start })));
  const wanted = entries.flatMap((entry) => keys.subject.parse(entry) ?? []);
  const rows = await table.getMany(
    wanted.map(({ namespace: where, kind, name }) => keys.object(where, kind, name)),
    { newer: "kept" },
  );
  return rows.filter((row) => row.type === "SyncGroup" || row.type === "Sync");
}

interface Placed {
  readonly gap: Gap;
  readonly unit: UnitRow;
  readonly stage: UnitStage;
}

async function readFacts(table: Table, gaps: readonly Gap[]): Promise<(gap: Gap) => LackingFacts> {
  const units = await readDistinct(
    table,
    gaps.map(({ subject }) => keys.unit(subjectOf(subject))),
  );
  const placed = new Map(
    gaps.flatMap((gap): readonly (readonly [Gap, Placed])[] => {
      const unit = units.get(keyText(keys.unit(subjectOf(gap.subject))));
      const name = stageOf(relationOf(gap.subject).rollout, gap.cluster);
      const stage = unit?.stages.find((one) => one.name === name);
      return unit === undefined || stage === undefined || unit.uid !== gap.subject.uid
        ? []
        : [[gap, { gap, unit, stage }]];
    }),
  );
  const rows = await readDistinct(table, [...placed.values()].flatMap(evidenceOf));
  return (gap) => {
    const place = placed.get(gap);
    if (place === undefined) return { subject: gap.subject };
    const { unit, stage } = place;
    const found = evidenceOf(place).flatMap((key) => rows.get(keyText(key)) ?? []);
    const legs = found.flatMap((row) => (row.type === "Leg" ? [[legKey(row), row] as const] : []));
    const arrivals = found.filter((row) => row.type === "Arrival");
    const of = (state: "waiting" | "failed" | "away") =>
      arrivals.find((row) => keyText(row) === keyText(keys.arrival(unit.subject, state, gap.cluster.name)));
    return {
      subject: gap.subject,
      content: found.find((row) => row.type === "Content"),
      place: legOf(stage, new Map(legs))?.phase ?? (of("waiting") === undefined ? undefined : "arrival"),
      target: found.find((row) => row.type === "Target"),
      failed: of("failed"),
      away: of("away"),
    };
  };
}

/** Arrivals are read only where the unit counts some. */
function evidenceOf({ gap: { cluster }, unit: { subject, arrivals }, stage }: Placed) {
  const { moving, passed, on } = stage;
  const number = moving?.content ?? on;
  const leg = moving ?? passed;
  const counted = defined({ waiting: arrivals.waiting, failed: arrivals.failed, away: arrivals.away });
  const states = (["waiting", "failed", "away"] as const).filter((state) => (counted[state] ?? 0) > 0);
  return [
    ...(number === undefined ? [] : [keys.content(subject, number)]),
    ...(moving === undefined ? [] : [keys.leg(subject, moving)]),
    ...(leg === undefined ? [] : [keys.target(subject, leg, cluster.name)]),
    ...states.map((state) => keys.arrival(subject, state, cluster.name)),
  ];
}

function subjectOf({ namespace, type: kind, name }: SubjectRow): Subject {
  return { namespace, kind, name };
}
