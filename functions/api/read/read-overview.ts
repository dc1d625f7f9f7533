import { checkedPrunes } from "#functions/api/read/checked-prunes.ts";
import { noRollout } from "#functions/api/read/read-rollouts.ts";
import { firstRows } from "#functions/api/request/page-request.ts";
import { refusal } from "#functions/api/request/refusal.ts";
import { allItems } from "#shared/base/all-pages.ts";
import type { Clock } from "#shared/base/clock.ts";
import { defined } from "#shared/base/defined.ts";
import { type RolloutOverview, rolloutOverview } from "#shared/fleet/api/rollout-overview.ts";
import type { GuardSpec } from "#shared/fleet/kinds/guard-spec.ts";
import { templateSources } from "#shared/fleet/kinds/template-sources.ts";
import { describeRevisions, desiredPlan, identityNow, relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import { noGuard, withDefaultGuard } from "#shared/fleet/rollout/guard.ts";
import { keepsTemplates, type TemplateFacts, templatesKept } from "#shared/fleet/rollout/guarded-templates.ts";
import { newestPlanned } from "#shared/fleet/rollout/order.ts";
import { stageRunKey } from "#shared/fleet/rollout/stage-runs.ts";
import { cordonsAmong } from "#shared/fleet/rows/cordons-row.ts";
import { freezeStateAmong } from "#shared/fleet/rows/freezes-row.ts";
import { keys, type Owner, ranges } from "#shared/fleet/rows/keys.ts";
import { type OwnerRow, reachesNobody, type SourceRow } from "#shared/fleet/rows/object-rows.ts";
import { pinKeys } from "#shared/fleet/rows/pin-row.ts";
import type {
  CatchUpRow,
  GuardState,
  RolloutRow,
  RolloutStateRow,
  SlotRow,
  WithheldChange,
} from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer, type Row } from "#shared/fleet/rows/row.ts";
import { isOfType } from "#shared/fleet/rows/stored-row.ts";
import { windowsFor } from "#shared/fleet/rows/windows-row.ts";
import { sourcesAmong } from "#shared/fleet/sources/sources-among.ts";
import { isCheckAwaited } from "#shared/fleet/waits/asked-waits.ts";
import { checkedSlots, type WaitFacts } from "#shared/fleet/waits/wait.ts";
import type { Table } from "#shared/ports.ts";

const catchUpsNamed = 5;

interface OverviewPorts {
  readonly table: Table;
  readonly clock: Clock;
  readonly defaultGuard?: GuardSpec | undefined;
}

/** @throws StarlingError `NotFound`, `NewerRow` */
export async function overviewOf(
  { table, clock, defaultGuard }: OverviewPorts,
  owner: Owner,
): Promise<RolloutOverview> {
  const { namespace, kind, name } = owner;
  const [row, rolloutState] = await Promise.all([
    table.get(keys.object(namespace, kind, name)),
    table.get(keys.rolloutState(owner)),
  ]);
  if (row === undefined) throw refusal("NotFound", `${kind} ${namespace}/${name} does not exist`);
  if (rolloutState === undefined || rolloutState.uid !== row.uid) throw noRollout(owner);
  // Without clusters there is no rollout, and the overview reports the reason.
  if (rolloutState.last === 0 && !reachesNobody(row.status.state)) throw noRollout(owner);
  const named = rolloutState.stages.flatMap(({ updatingTo, passed }) =>
    [updatingTo, passed].filter((stageRun) => stageRun !== undefined),
  );
  const sources = new Set(relationOf(row).templates.flatMap(templateSources));
  const [rows, slots, failedCatchUps, checked] = await Promise.all([
    table.getMany([
      keys.freezeState,
      keys.windowState,
      keys.cordonState,
      ...(keepsTemplates(rolloutState) ? [keys.rollout(owner, rolloutState.last)] : []),
      ...named.map((stageRun) => keys.stageRun(owner, stageRun)),
      ...[...sources].map((source) => keys.object(namespace, "Source", source)),
      ...pinKeys(namespace, relationOf(row).templates),
    ]),
    slotsOf(table, rolloutState),
    failedOf(table, rolloutState),
    kind === "SyncGroup" ? checkedPrunes(table, owner, rolloutState.guard) : [],
  ]);
  const guard = checked.length === 0 ? rolloutState.guard : withChecked(rolloutState.guard, checked);
  const seen = await table.getMany(
    slots
      .slice(0, checkedSlots)
      .flatMap(({ cluster, attempts }) => [
        keys.lease(cluster),
        ...Object.keys(attempts).map((sync) => keys.sync(cluster, namespace, sync)),
      ]),
    { newer: "kept" },
  );
  const leases = seen.filter((one) => one.type === "Lease");
  const syncs = seen.filter((one) => one.type === "SyncOnCluster");
  return rolloutOverview({
    now: clock.now(),
    row,
    rolloutState: { ...rolloutState, ...defined({ guard }) },
    stageRuns: new Map(
      rows.filter((one) => one.type === "StageRun").map((stageRun) => [stageRunKey(stageRun), stageRun]),
    ),
    ...desiredNow(
      { row: withDefaultGuard(row, defaultGuard), rolloutState, rollouts: rolloutsOf(rows), now: clock.now() },
      rows,
    ),
    freezeState: freezeStateAmong(rows),
    windows: windowsFor(row, rows),
    cordons: cordonsAmong(rows),
    ...askedOf(
      row,
      rows.filter((one) => one.type === "Source"),
    ),
    slots,
    syncs: Map.groupBy(syncs, ({ cluster }) => cluster),
    leases: new Map(leases.map((lease) => [keys.lease.read(lease).cluster, lease])),
    failedCatchUps,
  });
}

function withChecked(guard = noGuard, checked: readonly WithheldChange[]): GuardState {
  return { ...guard, withheld: [...guard.withheld, ...checked] };
}

/** The oldest first; nothing is read where nothing is counted. */
async function slotsOf(table: Table, { owner, stages, catchUps }: RolloutStateRow): Promise<readonly SlotRow[]> {
  if (stages.every(({ changing }) => changing === 0) && catchUps.changing === 0) return [];
  const range = ranges.slots(owner);
  const found = await Array.fromAsync(allItems((start) => table.query({ ...range, newer: "kept", ...start })));
  const slots = found.filter((row) => !isNewer(row));
  return slots.sort((a, b) => (a.since < b.since ? -1 : a.since > b.since ? 1 : 0));
}

async function failedOf(table: Table, { owner, catchUps }: RolloutStateRow): Promise<readonly CatchUpRow[]> {
  if (catchUps.failed === 0) return [];
  const range = { ...ranges.catchUps(owner, "failed"), limit: catchUpsNamed, newer: "kept" } as const;
  return (await firstRows(table, range)).filter((row) => !isNewer(row));
}

function askedOf({ operations }: OwnerRow, sources: readonly SourceRow[]): Pick<WaitFacts, "askedSources"> {
  if (operations.deletion !== undefined) return {};
  return { askedSources: sources.filter(isCheckAwaited).map(({ name }) => name) };
}

function rolloutsOf(rows: readonly Row[]): ReadonlyMap<number, RolloutRow> {
  const rollouts = rows.filter((row) => isOfType(row, "Rollout"));
  return new Map(rollouts.map((rollout) => [rollout.number, rollout]));
}

/** The revision that no stage has taken yet, or the reason why there is none. */
function desiredNow(
  facts: TemplateFacts & { readonly rolloutState: RolloutStateRow },
  rows: readonly Row[],
): Pick<WaitFacts, "desired" | "unready"> {
  const { row, rolloutState } = facts;
  const desired = desiredPlan(row, sourcesAmong(rows), templatesKept(facts));
  if (!desired.ok) return { unready: desired.message };
  const { plan } = desired;
  return identityNow({ rolloutState, row }, plan) === newestPlanned(rolloutState.ledger)?.identity
    ? {}
    : { desired: describeRevisions(plan) };
}
