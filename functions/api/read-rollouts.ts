import { decodeCursor, encodeCursor, type ListPage, type PageRequest } from "#functions/api/page-request.ts";
import { refusal } from "#functions/api/refusal.ts";
import { readRow } from "#shared/adapters/read-row.ts";
import { defined } from "#shared/base/defined.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import { type RolloutObject, rolloutObject, type TargetItem, targetItem } from "#shared/fleet/api/objects.ts";
import { type UnreadableObject, unreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import { keys, ranges, type Subject, syncName } from "#shared/fleet/rows/keys.ts";
import { type RolloutRow, type TargetRow, type TargetState, targetStates } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer, keyText, type NewerRow, newerRowText } from "#shared/fleet/rows/row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Table } from "#shared/ports.ts";

/** Pages of targets read for one answer when a state is asked for that few have. */
const readsPerAnswer = 10;
const targetsPerRead = 500;
const subjectsPerAnswer = 100;

export type ListedRollout = RolloutObject | UnreadableObject<"Rollout">;

/** Rollouts of a subject, newest first. @throws StarlingError `NewerRow` when nobody knows how many there are. */
export async function listRollouts(
  table: Table,
  { subject, page }: { readonly subject: Subject; readonly page: PageRequest },
): Promise<ListPage<ListedRollout>> {
  const head = await table.get(keys.head(subject));
  const from = page.after === undefined ? (head?.last ?? 0) : Number(decodeCursor(page.after).number);
  const to = Math.max(1, from - page.limit + 1);
  const wanted = Array.from({ length: Math.max(0, from - to + 1) }, (_, index) => from - index);
  const rows = new Map(
    (
      await table.getMany(
        wanted.map((number) => keys.rollout(subject, number)),
        { newer: "kept" },
      )
    ).map((row) => [keyText(row), row]),
  );
  const items = wanted.flatMap((number) => {
    const row = rows.get(keyText(keys.rollout(subject, number)));
    return row === undefined ? [] : [listedRollout(row, subject)];
  });
  return to > 1 ? { items, next: encodeCursor({ number: String(to - 1) }) } : { items };
}

/** The newest rollout of every subject of one namespace, or of all. */
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
  const ofHead = new Map(subjects.map((subject) => [keyText(keys.head(subject)), subject]));
  const heads = await table.getMany(subjects.map(keys.head), { newer: "kept" });
  const newest = heads.filter((head) => !isNewer(head));
  const ofRollout = new Map(newest.map((head) => [keyText(keys.rollout(head.subject, head.last)), head.subject]));
  const found = await table.getMany(
    newest.map((head) => keys.rollout(head.subject, head.last)),
    { newer: "kept" },
  );
  const rows = [...heads.filter(isNewer), ...found].sort((a, b) => (keyText(a) < keyText(b) ? -1 : 1));
  const items = rows.flatMap((row) => {
    const subject = ofHead.get(keyText(row)) ?? ofRollout.get(keyText(row));
    return subject === undefined ? [] : [listedRollout(row, subject)];
  });
  return entries.next === undefined ? { items } : { items, next: entries.next };
}

/** A head that cannot be read stands for the newest rollout of its subject, whose number it knows. */
function listedRollout(row: RolloutRow | NewerRow, subject: Subject): ListedRollout {
  if (!isNewer(row)) return rolloutObject(row);
  const { namespace, name } = subject;
  const number = keys.rollout.parse(row)?.number;
  const text = number === undefined ? name : `${name}-${number}`;
  return unreadableObject(row, { kind: "Rollout", namespace, name: text });
}

/** As it is listed. @throws StarlingError `NotFound` */
export async function showRollout(
  table: Table,
  { subject, number }: { readonly subject: Subject; readonly number: number },
): Promise<ListedRollout> {
  const row = await readRow(table, keys.rollout(subject, number));
  return row === undefined ? rolloutObject(await getRollout(table, { subject, number })) : listedRollout(row, subject);
}

/** `number` absent: the newest. @throws StarlingError `NotFound`, `NewerRow` */
export async function getRollout(
  table: Table,
  { subject, number }: { readonly subject: Subject; readonly number?: number },
): Promise<RolloutRow> {
  const wanted = number ?? (await table.get(keys.head(subject)))?.last ?? 0;
  const row = wanted === 0 ? undefined : await table.get(keys.rollout(subject, wanted));
  if (row !== undefined) return row;
  const which = number === undefined ? "no rollout yet" : `no rollout ${number}`;
  throw refusal("NotFound", `${subject.kind} ${subject.namespace}/${subject.name} has ${which}`);
}

export interface TargetFilter {
  readonly rollout: RolloutRow;
  /** Name of a stage. */
  readonly stage?: string;
  readonly states?: readonly TargetState[];
  readonly page: PageRequest;
}

/** Targets in their order, with what the worker said about those that are not done. */
export async function listTargets(table: Table, filter: TargetFilter): Promise<ListPage<TargetItem>> {
  const { rollout, page } = filter;
  const stages = rollout.stages.filter(
    (stage) => stage.size > 0 && (filter.stage === undefined || stage.name === filter.stage),
  );
  if (filter.stage !== undefined && !rollout.stages.some((stage) => stage.name === filter.stage)) {
    const names = rollout.stages.map((stage) => stage.name).join(", ");
    throw refusal("BadRequest", `stage is "${excerpt(filter.stage)}"; this rollout has ${names}`);
  }
  const first = stages[0];
  const last = stages.at(-1);
  if (first === undefined || last === undefined) return { items: [] };
  const found: (TargetRow | NewerRow)[] = [];
  const range = ranges.targets(rollout.subject, rollout.number, { from: first.first, to: last.last });
  let after = page.after;
  for (let reads = 0; reads < readsPerAnswer; reads++) {
    const part = await table.query({
      ...range,
      newer: "kept",
      limit: Math.min(targetsPerRead, page.limit - found.length),
      ...defined({ after }),
    });
    for (const row of part.items) {
      if (filter.states === undefined || (!isNewer(row) && filter.states.includes(row.state))) found.push(row);
    }
    after = part.next;
    if (after === undefined || found.length >= page.limit) break;
  }
  const syncs = await syncsOfTargets(table, { rollout, targets: found.filter((row) => !isNewer(row)) });
  const items = found.map((row) =>
    isNewer(row) ? unreadableTarget(row, rollout) : targetItem(row, rollout, syncs.get(row.cluster) ?? []),
  );
  return after === undefined ? { items } : { items, next: after };
}

/** Its key says where it stands. */
function unreadableTarget(row: NewerRow, { stages }: RolloutRow): TargetItem {
  const { order, cluster } = keys.target.read(row);
  const stage = stages.find(({ first, last }) => first <= order && order <= last);
  const reason = `NewerRow: ${newerRowText(row)}`;
  return { cluster, order, stage: stage?.name ?? "", state: "Unreadable", reason };
}

/** @throws StarlingError `BadRequest` naming the state that is none. */
export function targetStatesOf(text: string): readonly TargetState[] {
  return text.split(",").map((word) => {
    const state = targetStates.find((candidate) => candidate.toLowerCase() === word.trim().toLowerCase());
    if (state === undefined)
      throw refusal("BadRequest", `state is "${excerpt(word)}"; expected ${targetStates.join(", ")}`);
    return state;
  });
}

async function syncsOfTargets(
  table: Table,
  { rollout, targets }: { readonly rollout: RolloutRow; readonly targets: readonly TargetRow[] },
): Promise<ReadonlyMap<string, readonly SyncRow[]>> {
  const names = rollout.plan.templates.map((template) => syncName(rollout.subject, template.name));
  const touched = targets.filter((target) => target.state !== "Waiting" || target.reason !== "");
  const wanted = touched.flatMap((target) =>
    names.map((name) => keys.sync(target.cluster, rollout.subject.namespace, name)),
  );
  const found = await table.getMany(wanted, { newer: "kept" });
  const rows = found.filter((row) => row.type === "SyncOnCluster");
  return Map.groupBy(rows, (row) => row.cluster);
}
