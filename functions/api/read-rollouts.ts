import { decodeCursor, encodeCursor, type ListPage, type PageRequest } from "#functions/api/page-request.ts";
import { refusal } from "#functions/api/refusal.ts";
import { allItems } from "#shared/base/all-pages.ts";
import { defined } from "#shared/base/defined.ts";
import type { RolloutObject } from "#shared/fleet/api/objects.ts";
import { type ContentOnItsWay, rolloutObject } from "#shared/fleet/api/rollout-object.ts";
import { type UnreadableObject, unreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import { keys, ranges, type Subject } from "#shared/fleet/rows/keys.ts";
import type { UnitRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer, keyText, type NewerRow } from "#shared/fleet/rows/row.ts";
import type { Table } from "#shared/ports.ts";

const subjectsPerAnswer = 100;

export type ListedRollout = RolloutObject | UnreadableObject<"Rollout">;

/** Contents of a subject, newest first. @throws StarlingError `NewerRow` when nobody knows how many there are. */
export async function listRollouts(
  table: Table,
  { subject, page }: { readonly subject: Subject; readonly page: PageRequest },
): Promise<ListPage<ListedRollout>> {
  const unit = await table.get(keys.unit(subject));
  const from = page.after === undefined ? (unit?.last ?? 0) : Number(decodeCursor(page.after).number);
  if (from < 1) return { items: [] };
  const oldest = oldestOf(unit, from);
  const to = Math.max(oldest, from - page.limit + 1);
  const items = await readWays(table, subject, { unit, from: to, to: from });
  return to > oldest ? { items, next: encodeCursor({ number: String(to - 1) }) } : { items };
}

/** Of those before it nothing is kept. */
function oldestOf(unit: UnitRow | undefined, from: number): number {
  return Math.min(from, ...(unit?.past ?? []), ...(unit?.ledger ?? []).map(({ number }) => number));
}

/** Contents one after the other, the newest first; one whose legs a newer version wrote cannot be told by this one. */
async function readWays(
  table: Table,
  subject: Subject,
  { unit, from, to }: { readonly unit: UnitRow | undefined; readonly from: number; readonly to: number },
): Promise<readonly ListedRollout[]> {
  const wanted = Array.from({ length: to - from + 1 }, (_, index) => to - index);
  const range = ranges.legsBetween(subject, { from, to });
  const [contents, legs] = await Promise.all([
    table.getMany(
      wanted.map((number) => keys.content(subject, number)),
      { newer: "kept" },
    ),
    Array.fromAsync(allItems((start) => table.query({ ...range, newer: "kept", ...start }))),
  ]);
  const found = new Map(contents.map((row) => [keyText(row), row]));
  const legsOf = Map.groupBy(legs, (row) => keys.leg.read(row).leg.content);
  return wanted.flatMap((number): readonly ListedRollout[] => {
    const content = found.get(keyText(keys.content(subject, number)));
    if (content === undefined) return [];
    const own = legsOf.get(number) ?? [];
    if (isNewer(content)) return [unreadableRollout(content, subject, number)];
    const unread = own.find(isNewer);
    if (unread !== undefined) return [unreadableRollout(unread, subject, number)];
    return [rolloutObject({ content, stages: unit?.stages ?? [], legs: own.filter((leg) => !isNewer(leg)) })];
  });
}

/** The newest content of every subject of one namespace, or of all. */
export async function listNewestRollouts(
  table: Table,
  { namespace, page }: { readonly namespace: string | undefined; readonly page: PageRequest },
): Promise<ListPage<ListedRollout>> {
  const entries = await table.query({
    ...ranges.subjects(namespace),
    limit: Math.min(page.limit, subjectsPerAnswer),
    newer: "kept",
    ...defined({ after: page.after }),
  });
  const subjects = entries.items.flatMap((entry) => keys.subject.parse(entry) ?? []);
  const units = new Map(
    (await table.getMany(subjects.map(keys.unit), { newer: "kept" })).map((row) => [keyText(row), row]),
  );
  const known = [...units.values()].filter((row) => !isNewer(row)).filter(({ last }) => last > 0);
  const rows = await table.getMany(
    known.flatMap(({ subject, last, stages }) => [
      keys.content(subject, last),
      // Its legs are those that stages name: any other was sealed anew, or is of a stage that is gone.
      ...stages.flatMap(({ moving, passed }) =>
        [moving, passed].flatMap((leg) => (leg?.content === last ? [keys.leg(subject, leg)] : [])),
      ),
    ]),
    { newer: "kept" },
  );
  const found = new Map(rows.map((row) => [keyText(row), row]));
  const items = subjects.flatMap((subject): readonly ListedRollout[] => {
    const unit = units.get(keyText(keys.unit(subject)));
    if (unit === undefined) return [];
    if (isNewer(unit)) return [unreadableRollout(unit, subject)];
    const content = found.get(keyText(keys.content(subject, unit.last)));
    if (content === undefined) return [];
    const { last, stages } = unit;
    const refs = stages.flatMap(({ moving, passed }) => [moving, passed].filter((leg) => leg?.content === last));
    const legs = refs.flatMap((leg) => (leg === undefined ? [] : (found.get(keyText(keys.leg(subject, leg))) ?? [])));
    const unread = [content, ...legs].find(isNewer);
    if (unread !== undefined) return [unreadableRollout(unread, subject, last)];
    if (content.type !== "Content") return [];
    return [rolloutObject({ content, stages, legs: legs.filter((leg) => leg.type === "Leg") })];
  });
  return entries.next === undefined ? { items } : { items, next: entries.next };
}

/** A unit that cannot be read stands for the newest content of its subject, whose number it knows. */
function unreadableRollout(row: NewerRow, { namespace, name }: Subject, number?: number): UnreadableObject<"Rollout"> {
  return unreadableObject(row, { kind: "Rollout", namespace, name: number === undefined ? name : `${name}-${number}` });
}

/** As it is listed. @throws StarlingError `NotFound` */
export async function showRollout(
  table: Table,
  { subject, number }: { readonly subject: Subject; readonly number: number },
): Promise<ListedRollout> {
  const unit = await table.get(keys.unit(subject));
  const [found] = await readWays(table, subject, { unit, from: number, to: number });
  if (found !== undefined) return found;
  throw noRollout(subject, number);
}

/** `number` absent: the newest. @throws StarlingError `NotFound`, `NewerRow` */
export async function getRollout(
  table: Table,
  { subject, number }: { readonly subject: Subject; readonly number?: number },
): Promise<ContentOnItsWay> {
  const unit = await table.get(keys.unit(subject));
  const wanted = number ?? unit?.last ?? 0;
  const content = wanted === 0 ? undefined : await table.get(keys.content(subject, wanted));
  if (content === undefined) throw noRollout(subject, number);
  const legs = await Array.fromAsync(allItems((start) => table.query({ ...ranges.legs(subject, wanted), ...start })));
  return { content, stages: unit?.stages ?? [], legs };
}

export function noRollout({ kind, namespace, name }: Subject, number?: number) {
  const which = number === undefined ? "no rollout yet" : `no rollout ${number}`;
  return refusal("NotFound", `${kind} ${namespace}/${name} has ${which}`);
}
