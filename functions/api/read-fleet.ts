import { collect, type ListPage, type PageRequest } from "#functions/api/page-request.ts";
import { defined } from "#shared/base/defined.ts";
import { type SubjectInFleet, subjectInFleet } from "#shared/fleet/api/fleet-overview.ts";
import { type UnreadableObject, unreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import { legKey } from "#shared/fleet/rollout/legs.ts";
import { keys, ranges } from "#shared/fleet/rows/keys.ts";
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
  const moving = await table.getMany(
    units.flatMap(({ subject, stages }) =>
      stages.flatMap((stage) => (stage.moving ? [keys.leg(subject, stage.moving)] : [])),
    ),
    { newer: "kept" },
  );
  const legs = moving.filter((leg) => !isNewer(leg));
  const items = subjects.flatMap((subject): readonly ListedSubject[] => {
    const { kind, namespace: where, name } = subject;
    const row = found.get(keyText(keys.object(where, kind, name)));
    const unit = found.get(keyText(keys.unit(subject)));
    if (row === undefined) return [];
    if (isNewer(row)) return [unreadableObject(row, { kind, namespace: where, name })];
    if (unit !== undefined && isNewer(unit)) return [unreadableObject(unit, { kind, namespace: where, name })];
    if (row.type !== "SyncGroup" && row.type !== "Sync") return [];
    const own = legs.filter(
      (leg) => leg.subject.namespace === where && leg.subject.kind === kind && leg.subject.name === name,
    );
    return [
      subjectInFleet(row, {
        unit: unit?.type === "Unit" ? unit : undefined,
        legs: new Map(own.map((leg) => [legKey(leg), leg])),
      }),
    ];
  });
  return { items, ...defined({ next }) };
}
