import { leadingCorrelation } from "#shared/adapters/correlation.ts";
import { defined } from "#shared/base/defined.ts";
import { ownerFields, stageRunFields } from "#shared/fleet/log-fields.ts";
import { checkExpiresAt, checkOf, isCheckOpen } from "#shared/fleet/rollout/check-gate.ts";
import { stageRunEvents, syncEvents } from "#shared/fleet/rows/event-row.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { keyText, type RowKey } from "#shared/fleet/rows/row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { type Message, ownerKey, type ReportMessage } from "#shared/messages.ts";
import type { EventLog, Log, MessageSender, Metrics, Table } from "#shared/ports.ts";

export interface ReportPorts {
  readonly table: Pick<Table, "getMany">;
  readonly events: EventLog;
  readonly sender: MessageSender;
  readonly metrics: Metrics;
  readonly log: Log;
}

type Reported = ReportMessage & { readonly correlationId?: string };

/**
 * Reports changed states: events (the same rows, even when reported twice), metrics, and one message to the planner for
 * each owner, however many of its Syncs changed.
 */
export async function reportChanges(messages: readonly Reported[], ports: ReportPorts): Promise<void> {
  // A row of a newer version is reported by that version; it does not stop the others from being reported.
  const rows = await ports.table.getMany(
    messages.map(({ about }) => keyOf(about)),
    { newer: "kept" },
  );
  const syncs = rows.filter((row) => row.type === "SyncOnCluster");
  const stageRuns = rows.filter((row) => row.type === "StageRun");
  await ports.events.append([...syncs.flatMap(syncEvents), ...stageRuns.flatMap(stageRunEvents)]);
  for (const sync of syncs) {
    if (sync.observed !== undefined) ports.metrics.count("SyncPhase", 1, { phase: sync.observed.phase });
  }
  const correlationOf = correlations(messages);
  for (const stageRun of stageRuns) {
    ports.metrics.count("RolloutPhase", 1, { phase: stageRun.phase });
    const { stage, phase, reason, message: text } = stageRun;
    ports.log.info("stage run changed", {
      ...stageRunFields(stageRun),
      stage,
      phase,
      reason,
      text,
      ...correlationOf([stageRun]),
    });
  }
  for (const stageRun of stageRuns.filter(isCheckOpen)) {
    const { stage, planHash } = stageRun;
    ports.log.info("a check waits for an answer", {
      ...stageRunFields(stageRun),
      stage,
      plan: planHash,
      principal: checkOf(stageRun)?.principal,
      until: checkExpiresAt(stageRun),
      ...correlationOf([stageRun]),
    });
  }
  const byOwner = [...Map.groupBy(syncs, (sync) => ownerKey(sync.owner)).values()];
  for (const reported of byOwner) {
    const fields = reported.slice(0, 1).map(({ owner }) => ownerFields(owner))[0];
    ports.log.info("reported syncs to the planner", { ...fields, syncs: reported.length, ...correlationOf(reported) });
  }
  await ports.sender.send(
    byOwner.flatMap((reported) =>
      notifyPlanner(reported).map((message) => ({ ...message, ...correlationOf(reported) })),
    ),
  );
}

/** Gives the correlation id of the reports about some rows. */
function correlations(messages: readonly Reported[]) {
  const byRow = Map.groupBy(messages, ({ about }) => keyText(keyOf(about)));
  return (rows: readonly RowKey[]): { readonly correlationId?: string } => {
    const reported = rows.flatMap((row) => byRow.get(keyText(row)) ?? []);
    return defined({ correlationId: leadingCorrelation(reported.map(({ correlationId }) => correlationId)) });
  };
}

function keyOf(about: ReportMessage["about"]) {
  return about.kind === "Sync"
    ? keys.sync(about.cluster, about.namespace, about.name)
    : keys.stageRun(about.owner, about.stageRun);
}

function notifyPlanner(syncs: readonly SyncRow[]): readonly Message[] {
  const [first] = syncs;
  if (first === undefined) return [];
  return [{ to: "rollout", owner: first.owner, clusters: [...new Set(syncs.map(({ cluster }) => cluster))] }];
}
