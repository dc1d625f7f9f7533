import { fleetVersionKeys, fleetVersionOf } from "#functions/rollout/read/fleet.ts";
import type { GivenPorts } from "#functions/rollout/read/planner-ports.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { templateSources } from "#shared/fleet/kinds/template-sources.ts";
import { desiredPlan, relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import type { Known } from "#shared/fleet/rollout/facts.ts";
import { withDefaultGuard } from "#shared/fleet/rollout/guard.ts";
import { templatesKept } from "#shared/fleet/rollout/guarded-templates.ts";
import { allPast } from "#shared/fleet/rollout/ledger.ts";
import { keptRollouts, namedRollouts } from "#shared/fleet/rollout/order.ts";
import { stageRunKey } from "#shared/fleet/rollout/stage-runs.ts";
import { cordonsAmong } from "#shared/fleet/rows/cordons-row.ts";
import { freezeStateAmong } from "#shared/fleet/rows/freezes-row.ts";
import { keys, type Owner } from "#shared/fleet/rows/keys.ts";
import type { OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import { pinKeys } from "#shared/fleet/rows/pin-row.ts";
import type { RolloutStateRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer, newerRowText, type Row, rowSchema } from "#shared/fleet/rows/row.ts";
import { rowAt } from "#shared/fleet/rows/suspension.ts";
import { windowsFor } from "#shared/fleet/rows/windows-row.ts";
import { sourcesAmong } from "#shared/fleet/sources/sources-among.ts";

/** @returns undefined when the owner does not exist. @throws StarlingError `FreezesUnreadable` */
export async function readOwner(
  owner: Owner,
  ports: Pick<GivenPorts, "table" | "clock" | "defaultGuard">,
): Promise<Known | undefined> {
  const first = await ports.table.getMany([
    keys.object(owner.namespace, owner.kind, owner.name),
    keys.rolloutState(owner),
  ]);
  const stored = first.find(isOwner);
  if (stored === undefined) return undefined;
  const row = rowAt(stored, ports.clock.now());
  const guarded = withDefaultGuard(row, ports.defaultGuard);
  const rolloutState = rolloutStateFor(
    row,
    owner,
    first.find((candidate) => candidate.type === "RolloutState"),
  );
  const relation = relationOf(row);
  const sources = new Set(relation.templates.flatMap(templateSources));
  const refs = rolloutState.stages.flatMap(({ updatingTo, passed }) =>
    [updatingTo, passed].filter((stageRun) => stageRun !== undefined),
  );
  const { except = [] } = row.operations.hold ?? {};
  // Instead of a rejected rollout, stages give the one before.
  const named = rolloutState.rejected === undefined ? namedRollouts(rolloutState) : keptRollouts(rolloutState);
  const numbers = named.union(new Set([...except, rolloutState.last].filter(Boolean)));
  const second = await ports.table.getMany(
    [
      ...[...sources].map((name) => keys.object(owner.namespace, "Source", name)),
      ...pinKeys(owner.namespace, relation.templates),
      ...[...numbers].map((number) => keys.rollout(owner, number)),
      ...refs.map((stageRun) => keys.stageRun(owner, stageRun)),
      keys.freezeState,
      keys.windowState,
      keys.cordonState,
      ...fleetVersionKeys(relation.clusters),
    ],
    { newer: "kept" },
  );
  // A cluster that only a newer version can read is skipped; every other row is needed to decide at all.
  const newer = second.filter(isNewer).find((row) => keys.fleet.parse(row) === undefined);
  if (newer !== undefined) throw new StarlingError(newerRowText(newer), { code: "NewerRow", retry: "permanent" });
  const reading = freezeStateAmong(second);
  if (!reading.ok) throw new StarlingError(reading.message, { code: "FreezesUnreadable", retry: "transient" });
  const readable = second.filter((one) => !isNewer(one));
  const rollouts = second.filter((candidate) => candidate.type === "Rollout");
  const numbered = new Map(rollouts.map((rollout) => [rollout.number, rollout]));
  const stageRuns = second.filter((candidate) => candidate.type === "StageRun");
  return {
    owner,
    row,
    guarded,
    rolloutState,
    rollouts: numbered,
    stageRuns: new Map(stageRuns.map((stageRun) => [stageRunKey(stageRun), stageRun])),
    freezeState: reading.freezeState,
    windows: windowsFor(row, readable),
    cordons: cordonsAmong(readable),
    desired: desiredPlan(
      row,
      sourcesAmong(second),
      templatesKept({ row: guarded, rolloutState, rollouts: numbered, now: ports.clock.now() }),
    ),
    fleetVersion: fleetVersionOf(relation.clusters, second),
    fleetParts: second.filter((candidate) => candidate.type === "FleetVersion"),
  };
}

/** The rollout state of a former object of the same name continues with its numbers, because clusters remember them. */
export function rolloutStateFor({ uid }: OwnerRow, owner: Owner, found: RolloutStateRow | undefined): RolloutStateRow {
  if (found?.uid === uid) return found;
  return {
    ...keys.rolloutState(owner),
    type: "RolloutState",
    schema: rowSchema,
    version: found?.version ?? 0,
    owner,
    uid,
    last: found?.last ?? 0,
    snapshots: found?.snapshots ?? 0,
    stages: [],
    catchUps: { waiting: 0, changing: 0, failed: 0 },
    ledger: [],
    templates: [],
    membersVersion: 0,
    inputsVersion: 0,
    jobs: [],
    ...(found === undefined ? {} : allPast(found)),
  };
}

function isOwner(row: Row): row is OwnerRow {
  return row.type === "SyncGroup" || row.type === "Sync";
}
