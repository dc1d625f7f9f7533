import { collect, type ListPage, type PageRequest } from "#functions/api/request/page-request.ts";
import { defined } from "#shared/base/defined.ts";
import { type OwnerInFleet, ownerInFleet } from "#shared/fleet/api/fleet-overview.ts";
import { type UnreadableObject, unreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import { stageRunKey } from "#shared/fleet/rollout/stage-runs.ts";
import { keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { RolloutStateRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer, keyText } from "#shared/fleet/rows/row.ts";
import type { Table } from "#shared/ports.ts";

/** Owners that fit into two batches, each with its row and its rollout state. */
const ownersPerAnswer = 100;

export type ListedOwner = OwnerInFleet | UnreadableObject<"SyncGroup" | "Sync">;

/** Owners of one namespace, or of all, from their rows, their rollout states and their stage runs. */
export async function listFleet(
  table: Table,
  { namespace, page }: { readonly namespace?: string; readonly page: PageRequest },
): Promise<ListPage<ListedOwner>> {
  const { items: owners, next } = await collect(
    { ...page, limit: Math.min(page.limit, ownersPerAnswer) },
    {
      read: (part) => table.query({ ...ranges.owners(namespace), newer: "kept", ...part }),
      keep: (entry) => keys.owner.parse(entry),
    },
  );
  const rows = await table.getMany(
    owners.flatMap((owner) => [keys.object(owner.namespace, owner.kind, owner.name), keys.rolloutState(owner)]),
    { newer: "kept" },
  );
  const found = new Map(rows.map((row) => [keyText(row), row]));
  const rolloutStates = rows.flatMap((row) => (!isNewer(row) && row.type === "RolloutState" ? [row] : []));
  const updatingTo = await table.getMany(rolloutStates.flatMap(updatingOf), { newer: "kept" });
  const stageRuns = new Map(
    updatingTo.flatMap((stageRun) => (isNewer(stageRun) ? [] : [[keyText(stageRun), stageRun] as const])),
  );
  const items = owners.flatMap((owner): readonly ListedOwner[] => {
    const { kind, namespace: where, name } = owner;
    const row = found.get(keyText(keys.object(where, kind, name)));
    const its = found.get(keyText(keys.rolloutState(owner)));
    if (row === undefined) return [];
    if (isNewer(row)) return [unreadableObject(row, { kind, namespace: where, name })];
    if (its !== undefined && isNewer(its)) return [unreadableObject(its, { kind, namespace: where, name })];
    if (row.type !== "SyncGroup" && row.type !== "Sync") return [];
    const rolloutState = its?.type === "RolloutState" ? its : undefined;
    const own = updatingOf(rolloutState).flatMap((key) => stageRuns.get(keyText(key)) ?? []);
    return [
      ownerInFleet(row, { rolloutState, stageRuns: new Map(own.map((stageRun) => [stageRunKey(stageRun), stageRun])) }),
    ];
  });
  return { items, ...defined({ next }) };
}

/** The keys of the stage runs in progress. */
function updatingOf(rolloutState: RolloutStateRow | undefined) {
  return (
    rolloutState?.stages.flatMap(({ updatingTo }) =>
      updatingTo === undefined ? [] : [keys.stageRun(rolloutState.owner, updatingTo)],
    ) ?? []
  );
}
