import { decodeCursor, encodeCursor, type ListPage, type PageRequest } from "#functions/api/request/page-request.ts";
import { refusal } from "#functions/api/request/refusal.ts";
import { allItems } from "#shared/base/all-pages.ts";
import { defined } from "#shared/base/defined.ts";
import type { RolloutObject } from "#shared/fleet/api/objects.ts";
import { type RolloutInProgress, rolloutObject } from "#shared/fleet/api/rollout-object.ts";
import { type UnreadableObject, unreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import { keys, type Owner, ranges } from "#shared/fleet/rows/keys.ts";
import type { RolloutStateRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer, keyText, type NewerRow } from "#shared/fleet/rows/row.ts";
import type { Table } from "#shared/ports.ts";

const ownersPerAnswer = 100;

export type ListedRollout = RolloutObject | UnreadableObject<"Rollout">;

/** Rollouts of an owner, newest first. @throws StarlingError `NewerRow` when their number is unknown. */
export async function listRollouts(
  table: Table,
  { owner, page }: { readonly owner: Owner; readonly page: PageRequest },
): Promise<ListPage<ListedRollout>> {
  const rolloutState = await table.get(keys.rolloutState(owner));
  const from = page.after === undefined ? (rolloutState?.last ?? 0) : Number(decodeCursor(page.after).number);
  if (from < 1) return { items: [] };
  const oldest = oldestOf(rolloutState, from);
  const to = Math.max(oldest, from - page.limit + 1);
  const items = await readWays(table, owner, { rolloutState, from: to, to: from });
  return to > oldest ? { items, next: encodeCursor({ number: String(to - 1) }) } : { items };
}

/** Older rollouts are not kept. */
function oldestOf(rolloutState: RolloutStateRow | undefined, from: number): number {
  return Math.min(from, ...(rolloutState?.past ?? []), ...(rolloutState?.ledger ?? []).map(({ number }) => number));
}

/**
 * Rollouts one after the other, the newest first; one whose stage runs a newer version wrote cannot be shown by this
 * version.
 */
async function readWays(
  table: Table,
  owner: Owner,
  {
    rolloutState,
    from,
    to,
  }: { readonly rolloutState: RolloutStateRow | undefined; readonly from: number; readonly to: number },
): Promise<readonly ListedRollout[]> {
  const desired = Array.from({ length: to - from + 1 }, (_, index) => to - index);
  const range = ranges.stageRunsBetween(owner, { from, to });
  const [rollouts, stageRuns] = await Promise.all([
    table.getMany(
      desired.map((number) => keys.rollout(owner, number)),
      { newer: "kept" },
    ),
    Array.fromAsync(allItems((start) => table.query({ ...range, newer: "kept", ...start }))),
  ]);
  const found = new Map(rollouts.map((row) => [keyText(row), row]));
  const stageRunsOf = Map.groupBy(stageRuns, (row) => keys.stageRun.read(row).stageRun.rollout);
  return desired.flatMap((number): readonly ListedRollout[] => {
    const rollout = found.get(keyText(keys.rollout(owner, number)));
    if (rollout === undefined) return [];
    const own = stageRunsOf.get(number) ?? [];
    if (isNewer(rollout)) return [unreadableRollout(rollout, owner, number)];
    const unread = own.find(isNewer);
    if (unread !== undefined) return [unreadableRollout(unread, owner, number)];
    return [
      rolloutObject({
        rollout,
        stages: rolloutState?.stages ?? [],
        ...defined({ rejected: rolloutState?.rejected }),
        stageRuns: own.filter((stageRun) => !isNewer(stageRun)),
      }),
    ];
  });
}

/** The newest rollout of every owner of one namespace, or of all. */
export async function listNewestRollouts(
  table: Table,
  { namespace, page }: { readonly namespace: string | undefined; readonly page: PageRequest },
): Promise<ListPage<ListedRollout>> {
  const entries = await table.query({
    ...ranges.owners(namespace),
    limit: Math.min(page.limit, ownersPerAnswer),
    newer: "kept",
    ...defined({ after: page.after }),
  });
  const owners = entries.items.flatMap((entry) => keys.owner.parse(entry) ?? []);
  const rolloutStates = new Map(
    (await table.getMany(owners.map(keys.rolloutState), { newer: "kept" })).map((row) => [keyText(row), row]),
  );
  const known = [...rolloutStates.values()].filter((row) => !isNewer(row)).filter(({ last }) => last > 0);
  const rows = await table.getMany(
    known.flatMap(({ owner, last, stages }) => [
      keys.rollout(owner, last),
      // Its stage runs are those that stages name: any other has an older snapshot, or belongs to a removed stage.
      ...stages.flatMap(({ updatingTo, passed }) =>
        [updatingTo, passed].flatMap((stageRun) =>
          stageRun?.rollout === last ? [keys.stageRun(owner, stageRun)] : [],
        ),
      ),
    ]),
    { newer: "kept" },
  );
  const found = new Map(rows.map((row) => [keyText(row), row]));
  const items = owners.flatMap((owner): readonly ListedRollout[] => {
    const rolloutState = rolloutStates.get(keyText(keys.rolloutState(owner)));
    if (rolloutState === undefined) return [];
    if (isNewer(rolloutState)) return [unreadableRollout(rolloutState, owner)];
    const rollout = found.get(keyText(keys.rollout(owner, rolloutState.last)));
    if (rollout === undefined) return [];
    const { last, stages, rejected } = rolloutState;
    const refs = stages.flatMap(({ updatingTo, passed }) =>
      [updatingTo, passed].filter((stageRun) => stageRun?.rollout === last),
    );
    const stageRuns = refs.flatMap((stageRun) =>
      stageRun === undefined ? [] : (found.get(keyText(keys.stageRun(owner, stageRun))) ?? []),
    );
    const unread = [rollout, ...stageRuns].find(isNewer);
    if (unread !== undefined) return [unreadableRollout(unread, owner, last)];
    if (rollout.type !== "Rollout") return [];
    return [
      rolloutObject({
        rollout,
        stages,
        ...defined({ rejected }),
        stageRuns: stageRuns.filter((stageRun) => stageRun.type === "StageRun"),
      }),
    ];
  });
  return entries.next === undefined ? { items } : { items, next: entries.next };
}

/** An unreadable rollout state stands for the newest rollout of its owner, whose number its key has. */
function unreadableRollout(row: NewerRow, { namespace, name }: Owner, number?: number): UnreadableObject<"Rollout"> {
  return unreadableObject(row, { kind: "Rollout", namespace, name: number === undefined ? name : `${name}-${number}` });
}

/** The rollout as it is listed. @throws StarlingError `NotFound` */
export async function showRollout(
  table: Table,
  { owner, number }: { readonly owner: Owner; readonly number: number },
): Promise<ListedRollout> {
  const rolloutState = await table.get(keys.rolloutState(owner));
  const [found] = await readWays(table, owner, { rolloutState, from: number, to: number });
  if (found !== undefined) return found;
  throw noRollout(owner, number);
}

/** When `number` is absent, the newest. @throws StarlingError `NotFound`, `NewerRow` */
export async function getRollout(
  table: Table,
  { owner, number }: { readonly owner: Owner; readonly number?: number },
): Promise<RolloutInProgress> {
  const rolloutState = await table.get(keys.rolloutState(owner));
  const desired = number ?? rolloutState?.last ?? 0;
  const rollout = desired === 0 ? undefined : await table.get(keys.rollout(owner, desired));
  if (rollout === undefined) throw noRollout(owner, number);
  const stageRuns = await Array.fromAsync(
    allItems((start) => table.query({ ...ranges.stageRuns(owner, desired), ...start })),
  );
  return { rollout, stages: rolloutState?.stages ?? [], ...defined({ rejected: rolloutState?.rejected }), stageRuns };
}

export function noRollout({ kind, namespace, name }: Owner, number?: number) {
  const which = number === undefined ? "no rollout yet" : `no rollout ${number}`;
  return refusal("NotFound", `${kind} ${namespace}/${name} has ${which}`);
}
