import { firstRows } from "#functions/api/page-request.ts";
import { noRollout } from "#functions/api/read-rollouts.ts";
import { refusal } from "#functions/api/refusal.ts";
import { allItems } from "#shared/base/all-pages.ts";
import type { Clock } from "#shared/base/clock.ts";
import { type RolloutOverview, rolloutOverview } from "#shared/fleet/api/rollout-overview.ts";
import { templateSources } from "#shared/fleet/kinds/template-sources.ts";
import { legKey } from "#shared/fleet/rollout/legs.ts";
import { describeRevisions, desiredPlan, identityNow, relationOf } from "#shared/fleet/rollout/plan.ts";
import { brakeAmong } from "#shared/fleet/rows/brake-row.ts";
import { keys, ranges, type Subject } from "#shared/fleet/rows/keys.ts";
import { reachesNobody, type SourceRow, type SubjectRow } from "#shared/fleet/rows/object-rows.ts";
import type { ArrivalRow, SlotRow, UnitRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import { isLookAwaited } from "#shared/fleet/waits/asked-waits.ts";
import { slotsLookedAt, type WaitFacts } from "#shared/fleet/waits/wait.ts";
import type { Table } from "#shared/ports.ts";

const arrivalsNamed = 5;

interface OverviewPorts {
  readonly table: Table;
  readonly clock: Clock;
}

/** @throws StarlingError `NotFound`, `NewerRow` */
export async function overviewOf({ table, clock }: OverviewPorts, subject: Subject): Promise<RolloutOverview> {
  const { namespace, kind, name } = subject;
  const [row, unit] = await Promise.all([table.get(keys.object(namespace, kind, name)), table.get(keys.unit(subject))]);
  if (row === undefined) throw refusal("NotFound", `${kind} ${namespace}/${name} does not exist`);
  if (unit === undefined || unit.uid !== row.uid) throw noRollout(subject);
  // Without clusters there is no content, and the overview says why.
  if (unit.last === 0 && !reachesNobody(row.status.state)) throw noRollout(subject);
  const named = unit.stages.flatMap(({ moving, passed }) => [moving, passed].filter((leg) => leg !== undefined));
  const sources = new Set(relationOf(row).templates.flatMap(templateSources));
  const [rows, slots, failedArrivals] = await Promise.all([
    table.getMany([
      keys.brake,
      ...named.map((leg) => keys.leg(subject, leg)),
      ...[...sources].map((source) => keys.object(namespace, "Source", source)),
    ]),
    slotsOf(table, unit),
    failedOf(table, unit),
  ]);
  const looked = slots.slice(0, slotsLookedAt);
  const seen = await table.getMany(
    looked.flatMap(({ cluster, attempts }) => [
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
    unit,
    legs: new Map(rows.filter((one) => one.type === "Leg").map((leg) => [legKey(leg), leg])),
    ...wantedNow(
      row,
      unit,
      rows.filter((one) => one.type === "Source"),
    ),
    brake: brakeAmong(rows),
    ...askedOf(
      row,
      rows.filter((one) => one.type === "Source"),
    ),
    slots,
    syncs: Map.groupBy(syncs, ({ cluster }) => cluster),
    leases: new Map(leases.map((lease) => [keys.lease.read(lease).cluster, lease])),
    failedArrivals,
  });
}

/** The oldest first; none is read where none is counted. */
async function slotsOf(table: Table, { subject, stages, arrivals }: UnitRow): Promise<readonly SlotRow[]> {
  if (stages.every(({ changing }) => changing === 0) && arrivals.changing === 0) return [];
  const range = ranges.slots(subject);
  const found = await Array.fromAsync(allItems((start) => table.query({ ...range, newer: "kept", ...start })));
  const slots = found.filter((row) => !isNewer(row));
  return slots.sort((a, b) => (a.since < b.since ? -1 : a.since > b.since ? 1 : 0));
}

async function failedOf(table: Table, { subject, arrivals }: UnitRow): Promise<readonly ArrivalRow[]> {
  if (arrivals.failed === 0) return [];
  const range = { ...ranges.arrivals(subject, "failed"), limit: arrivalsNamed, newer: "kept" } as const;
  return (await firstRows(table, range)).filter((row) => !isNewer(row));
}

function askedOf({ operations }: SubjectRow, sources: readonly SourceRow[]): Pick<WaitFacts, "askedSources"> {
  if (operations.deletion !== undefined) return {};
  return { askedSources: sources.filter(isLookAwaited).map(({ name }) => name) };
}

/** The revision that no stage has taken yet, by its words, or why there is none. */
function wantedNow(
  row: SubjectRow,
  unit: UnitRow,
  sources: readonly SourceRow[],
): Pick<WaitFacts, "wanted" | "unready"> {
  const desired = desiredPlan(row, new Map(sources.map((source) => [source.name, source])));
  if (!desired.ok) return { unready: desired.message };
  const { plan } = desired;
  return identityNow({ unit, row }, plan) === unit.ledger[0]?.identity ? {} : { wanted: describeRevisions(plan) };
}
