import type { TickPorts } from "#functions/tick/claim-due.ts";
import type { TroubledZones } from "#functions/tick/survey-zones.ts";
import { stateEntries } from "#shared/adapters/state-entries.ts";
import { tableNow } from "#shared/adapters/table-now.ts";
import { allPages } from "#shared/base/all-pages.ts";
import { zoneOfEntry } from "#shared/fleet/rows/cluster-entry.ts";
import { keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import {
  behindSeconds,
  isBehind,
  isStale,
  nothingSurveyed,
  type Survey,
  surveyedStates,
  withOwner,
  withSuspend,
} from "#shared/fleet/survey.ts";

/**
 * Reports the state of the fleet from the rows that people write: one row for each Source, SyncGroup and Sync, and one more
 * for each owner that is behind, but never one for each cluster. A value of zero is not reported: a series without reports
 * costs nothing, and its alarm treats missing data as zero.
 */
export async function takeSurvey(ports: TickPorts, troubled: TroubledZones = new Set()): Promise<Survey> {
  const survey = await surveyed(ports, troubled);
  const { metrics } = ports;
  for (const state of surveyedStates) {
    if (survey.targets[state] > 0) metrics.count("Targets", survey.targets[state], { state });
  }
  if (survey.inZones > 0) metrics.count("UnreachableInZones", survey.inZones);
  if (survey.halted > 0) metrics.count("HaltedRollouts", survey.halted);
  if (survey.staleSources > 0) metrics.count("StaleSources", survey.staleSources);
  if (survey.withheld > 0) metrics.count("WithheldChanges", survey.withheld);
  if (survey.oldestSeconds > 0) metrics.seconds("OldestRevision", survey.oldestSeconds);
  if (survey.suspendedSeconds > 0) metrics.seconds("OldestSuspend", survey.suspendedSeconds);
  return survey;
}

/** Number of the owner's unreachable clusters that are in such zones. */
async function unreachableIn(
  troubled: TroubledZones,
  { namespace, type, name }: OwnerRow,
  table: TickPorts["table"],
): Promise<number> {
  const entries = await stateEntries({ namespace, kind: type, name }, table, "Unreachable");
  const clusters = [...new Set(entries.map(({ cluster }) => cluster))];
  const rows = await table.getMany(clusters.map(keys.fleet), { newer: "kept" });
  return rows.filter((row) => row.type === "Fleet" && troubled.has(zoneOfEntry(row))).length;
}

async function surveyed(ports: TickPorts, troubled: TroubledZones): Promise<Survey> {
  const table = tableNow(ports.table, ports.clock);
  const now = ports.clock.now();
  let survey = nothingSurveyed;
  for await (const entries of allPages((start) => table.query({ ...ranges.owners(), newer: "kept", ...start }))) {
    const desired = entries.flatMap((entry) => keys.owner.parse(entry) ?? []);
    const found = await table.getMany(
      desired.map(({ namespace, kind, name }) => keys.object(namespace, kind, name)),
      { newer: "kept" },
    );
    const rows = found.filter((row) => row.type === "SyncGroup" || row.type === "Sync");
    for (const row of rows) survey = withSuspend(withOwner(survey, row), row, now);
    const away = troubled.size === 0 ? [] : rows.filter(({ status }) => (status.clusters?.unreachable ?? 0) > 0);
    for (const row of away)
      survey = { ...survey, inZones: survey.inZones + (await unreachableIn(troubled, row, table)) };
    const behind = rows
      .filter(isBehind)
      .map(({ namespace, type, name }) => keys.rolloutState({ namespace, kind: type, name }));
    const rolloutStates = (await table.getMany(behind, { newer: "kept" })).filter((row) => !isNewer(row));
    const oldestSeconds = Math.max(
      survey.oldestSeconds,
      ...rolloutStates.map((rolloutState) => behindSeconds(rolloutState, now)),
    );
    survey = { ...survey, oldestSeconds };
  }
  for await (const entries of allPages((start) => table.query({ ...ranges.sources, newer: "kept", ...start }))) {
    const desired = entries.flatMap((entry) => keys.sourceEntry.parse(entry) ?? []);
    const found = await table.getMany(
      desired.map(({ namespace, name }) => keys.object(namespace, "Source", name)),
      { newer: "kept" },
    );
    for (const row of found.filter((row) => row.type === "Source")) {
      survey = withSuspend({ ...survey, staleSources: survey.staleSources + (isStale(row, now) ? 1 : 0) }, row, now);
    }
  }
  return survey;
}
