import { inParts } from "#shared/base/in-parts.ts";
import { type EventRow, legEvents, syncEvents } from "#shared/fleet/rows/event-row.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { type Message, type ReportMessage, subjectKey } from "#shared/messages.ts";
import type { MessageSender, Metrics, Table } from "#shared/ports.ts";

export interface ReportPorts {
  readonly table: Table;
  readonly sender: MessageSender;
  readonly metrics: Metrics;
}

const writesAtOnce = 100;

/**
 * Tells of changed states: events (told twice, they are the same rows), metrics, and one message to the planner per
 * subject, however many of its Syncs changed.
 */
export async function reportChanges(messages: readonly ReportMessage[], ports: ReportPorts): Promise<void> {
  // One that a newer version wrote is that version's to tell of, and keeps no other from being told.
  const rows = await ports.table.getMany(
    messages.map(({ about }) => keyOf(about)),
    { newer: "kept" },
  );
  const syncs = rows.filter((row) => row.type === "SyncOnCluster");
  const legs = rows.filter((row) => row.type === "Leg");
  const events = [...syncs.flatMap(syncEvents), ...legs.flatMap(legEvents)];
  await writeEvents(events, ports.table);
  for (const sync of syncs) {
    if (sync.observed !== undefined) ports.metrics.count("SyncPhase", 1, { phase: sync.observed.phase });
  }
  for (const leg of legs) ports.metrics.count("RolloutPhase", 1, { phase: leg.phase });
  const bySubject = Map.groupBy(syncs, (sync) => subjectKey(sync.subject));
  await ports.sender.send([...bySubject.values()].flatMap(tellPlanner));
}

function keyOf(about: ReportMessage["about"]) {
  return about.kind === "Sync"
    ? keys.sync(about.cluster, about.namespace, about.name)
    : keys.leg(about.subject, about.leg);
}

function tellPlanner(syncs: readonly SyncRow[]): readonly Message[] {
  const [first] = syncs;
  if (first === undefined) return [];
  return [{ to: "rollout", subject: first.subject, clusters: [...new Set(syncs.map(({ cluster }) => cluster))] }];
}

async function writeEvents(events: readonly EventRow[], table: Table): Promise<void> {
  const distinct = [...new Map(events.map((event) => [`${event.pk}|${event.sk}`, event])).values()];
  for (const part of inParts(distinct, writesAtOnce)) await table.write(part.map((event) => ({ put: event })));
}
