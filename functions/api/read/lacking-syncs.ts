import { readDistinct } from "#functions/api/read/desired-renderings.ts";
import { allItems } from "#shared/base/all-pages.ts";
import { defined } from "#shared/base/defined.ts";
import { type LackingFacts, lackingState, syncsFor } from "#shared/fleet/api/lacking.ts";
import { lackingSyncObject } from "#shared/fleet/api/lacking-sync.ts";
import type { SyncObject } from "#shared/fleet/api/objects.ts";
import { relationOf, stageOf } from "#shared/fleet/rollout/desired-plan.ts";
import { stageRunKey, stageRunOf } from "#shared/fleet/rollout/stage-runs.ts";
import { keys, type Owner, ranges } from "#shared/fleet/rows/keys.ts";
import type { FleetRow, OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import type { RolloutStateRow, StageRecord } from "#shared/fleet/rows/rollout-rows.ts";
import { keyText } from "#shared/fleet/rows/row.ts";
import type { Table } from "#shared/ports.ts";

export interface LackingFilter {
  readonly clusters: readonly FleetRow[];
  /** By `keyText` of the row: the existing Syncs, whatever they hold. */
  readonly present: ReadonlySet<string>;
  /** Only of this namespace. */
  readonly namespace?: string | undefined;
}

/** An owner and a cluster that it selects, with the names of the Syncs that are missing. */
interface Gap {
  readonly owner: OwnerRow;
  readonly cluster: FleetRow;
  readonly names: readonly string[];
}

/**
 * Syncs that clusters should have by the specs of all owners, and that were never assigned. Each owner is read once;
 * targets and catch-ups are read only for clusters that lack something.
 */
export async function lackingSyncs(table: Table, filter: LackingFilter): Promise<readonly SyncObject[]> {
  const owners = await ownersIn(table, filter.namespace);
  const gaps = owners.flatMap((owner) =>
    filter.clusters.flatMap((cluster): Gap | readonly never[] => {
      const { namespace } = owner;
      const names = syncsFor(owner, cluster).filter(
        (name) => !filter.present.has(keyText(keys.sync(cluster.name, namespace, name))),
      );
      return names.length === 0 ? [] : { owner, cluster, names };
    }),
  );
  if (gaps.length === 0) return [];
  const factsOf = await readFacts(table, gaps);
  return gaps.flatMap((gap) => {
    const facts = factsOf(gap);
    return gap.names.flatMap((name) => {
      const lacking = lackingState(name, facts);
      return lacking === undefined ? [] : lackingSyncObject(gap.owner, { cluster: gap.cluster.name, name, lacking });
    });
  });
}

async function ownersIn(table: Table, namespace: string | undefined): Promise<readonly OwnerRow[]> {
  const range = ranges.owners(namespace);
  const entries = await Array.fromAsync(allItems((start) => table.query({ ...range, newer: "kept", ...start })));
  const desired = entries.flatMap((entry) => keys.owner.parse(entry) ?? []);
  const rows = await table.getMany(
    desired.map(({ namespace: where, kind, name }) => keys.object(where, kind, name)),
    { newer: "kept" },
  );
  return rows.filter((row) => row.type === "SyncGroup" || row.type === "Sync");
}

interface Placed {
  readonly gap: Gap;
  readonly rolloutState: RolloutStateRow;
  readonly stage: StageRecord;
}

async function readFacts(table: Table, gaps: readonly Gap[]): Promise<(gap: Gap) => LackingFacts> {
  const rolloutStates = await readDistinct(
    table,
    gaps.map(({ owner }) => keys.rolloutState(syncOwner(owner))),
  );
  const placed = new Map(
    gaps.flatMap((gap): readonly (readonly [Gap, Placed])[] => {
      const rolloutState = rolloutStates.get(keyText(keys.rolloutState(syncOwner(gap.owner))));
      const name = stageOf(relationOf(gap.owner).rollout, gap.cluster);
      const stage = rolloutState?.stages.find((one) => one.name === name);
      return rolloutState === undefined || stage === undefined || rolloutState.uid !== gap.owner.uid
        ? []
        : [[gap, { gap, rolloutState, stage }]];
    }),
  );
  const rows = await readDistinct(table, [...placed.values()].flatMap(evidenceOf));
  return (gap) => {
    const place = placed.get(gap);
    if (place === undefined) return { owner: gap.owner };
    const { rolloutState, stage } = place;
    const found = evidenceOf(place).flatMap((key) => rows.get(keyText(key)) ?? []);
    const stageRuns = found.flatMap((row) => (row.type === "StageRun" ? [[stageRunKey(row), row] as const] : []));
    const catchUps = found.filter((row) => row.type === "CatchUp");
    const of = (state: "waiting" | "failed" | "away") =>
      catchUps.find((row) => keyText(row) === keyText(keys.catchUp(rolloutState.owner, state, gap.cluster.name)));
    return {
      owner: gap.owner,
      rollout: found.find((row) => row.type === "Rollout"),
      place: stageRunOf(stage, new Map(stageRuns))?.phase ?? (of("waiting") === undefined ? undefined : "catchUp"),
      target: found.find((row) => row.type === "Target"),
      failed: of("failed"),
      away: of("away"),
    };
  };
}

/** Catch-ups are read only when the rollout state counts some. */
function evidenceOf({ gap: { cluster }, rolloutState: { owner, catchUps }, stage }: Placed) {
  const { updatingTo, passed, current } = stage;
  const number = updatingTo?.rollout ?? current;
  const stageRun = updatingTo ?? passed;
  const counted = defined({ waiting: catchUps.waiting, failed: catchUps.failed, away: catchUps.away });
  const states = (["waiting", "failed", "away"] as const).filter((state) => (counted[state] ?? 0) > 0);
  return [
    ...(number === undefined ? [] : [keys.rollout(owner, number)]),
    ...(updatingTo === undefined ? [] : [keys.stageRun(owner, updatingTo)]),
    ...(stageRun === undefined ? [] : [keys.target(owner, stageRun, cluster.name)]),
    ...states.map((state) => keys.catchUp(owner, state, cluster.name)),
  ];
}

function syncOwner({ namespace, type: kind, name }: OwnerRow): Owner {
  return { namespace, kind, name };
}
