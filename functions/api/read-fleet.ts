import { collect, type ListPage, type PageRequest } from "#functions/api/page-request.ts";
import { defined } from "#shared/base/defined.ts";
import { type SubjectInFleet, subjectInFleet } from "#shared/fleet/api/fleet-overview.ts";
import { type UnreadableObject, unreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import { legKey } from "#shared/fleet/rollout/legs.ts";
import { keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { UnitRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer, keyText } from "#shared/fleet/rows/row.ts";
import type { Table } from "#shared/ports.ts";

/** As many as two batches hold, each with its row and its unit. */
const subjectsPerAnswer = 100;

export type ListedSubject = SubjectInFleet | UnreadableObject<"SyncGroup" | "Sync">;

/** What people wrote, of one namespace or of all, from their rows, their units' and those of what goes through their stages. */
export async function listFleet(
  table: Table,
  { namespace, page }: { readonly namespace?: string; readonly page: PageRequest },
): Promise<ListPage<ListedSubject>> {
  const { items: subjects, next } = await collect(
    { ...page, limit: Math.min(page.limit, subjectsPerAnswer) },
    {
      read: (part) => table.query({ ...ranges.subjects(namespace), newer: "kept", ...part }),
      keep: (entry) => keys.subject.parse(entry),
    },
  );
  const rows = await table.getMany(
    subjects.flatMap((subject) => [keys.object(subject.namespace, subject.kind, subject.name), keys.unit(subject)]),
    { newer: "kept" },
  );
  const found = new Map(rows.map((row) => [keyText(row), row]));
  const units = rows.flatMap((row) => (!isNewer(row) && row.type === "Unit" ? [row] : []));
  const moving = await table.getMany(units.flatMap(movingOf), { newer: "kept" });
  const legs = new Map(moving.flatMap((leg) => (isNewer(leg) ? [] : [[keyText(leg), leg] as const])));
  const items = subjects.flatMap((subject): readonly ListedSubject[] => {
    const { kind, namespace: where, name } = subject;
    const row = found.get(keyText(keys.object(where, kind, name)));
    const its = found.get(keyText(keys.unit(subject)));
    if (row === undefined) return [];
    if (isNewer(row)) return [unreadableObject(row, { kind, namespace: where, name })];
    if (its !== undefined && isNewer(its)) return [unreadableObject(its, { kind, namespace: where, name })];
    if (row.type !== "SyncGroup" && row.type !== "Sync") return [];
    const unit = its?.type === "Unit" ? its : undefined;
    const own = movingOf(unit).flatMap((key) => legs.get(keyText(key)) ?? []);
    return [subjectInFleet(row, { unit, legs: new Map(own.map((leg) => [legKey(leg), leg])) })];
  });
  return { items, ...defined({ next }) };
}

/** The keys of what goes through its stages. */
function movingOf(unit: UnitRow | undefined) {
  return unit?.stages.flatMap(({ moving }) => (moving === undefined ? [] : [keys.leg(unit.subject, moving)])) ?? [];
}
