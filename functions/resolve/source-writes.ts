/** Writes the result of a poll, and informs the owners and Sources that use the Source. */

import { wakePins } from "#functions/resolve/resolve-pin.ts";
import { allItems } from "#shared/base/all-pages.ts";
import type { Clock } from "#shared/base/clock.ts";
import { defined } from "#shared/base/defined.ts";
import { errorCode, errorMessage, isConflict } from "#shared/base/errors.ts";
import { due, watchdogAt } from "#shared/fleet/rows/due.ts";
import { keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { Artifact, SourceRow, SourceStatus } from "#shared/fleet/rows/object-rows.ts";
import type { PinRow } from "#shared/fleet/rows/pin-row.ts";
import { revisionRow } from "#shared/fleet/rows/revision-row.ts";
import { nextResolve } from "#shared/fleet/sources/next-resolve.ts";
import { droppedEvents, pendingEvents, withEvents, withoutPending } from "#shared/fleet/sources/source-events.ts";
import { diedMessage, type FetchDecision, interrupted } from "#shared/fleet/sources/source-fetch.ts";
import { announcementOf, fetchingStatus } from "#shared/fleet/sources/source-status.ts";
import type { Message } from "#shared/messages.ts";
import type { EventBus, Log, MessageSender, Table, Write } from "#shared/ports.ts";

export interface SourceWritePorts {
  readonly table: Table;
  readonly sender: MessageSender;
  readonly clock: Clock;
  readonly log: Log;
  /** Undefined when the installation sends no events. */
  readonly events: { readonly bus: EventBus; readonly installation: string } | undefined;
}

/**
 * Marks the row while the commit is fetched; the row is due again in case this function dies.
 * @param lost - the artifact that is fetched again because it is missing.
 * @throws ConflictError when another writer was faster.
 */
export async function writeStart(
  row: SourceRow,
  {
    decision,
    lost,
  }: { readonly decision: Extract<FetchDecision, { kind: "start" }>; readonly lost: string | undefined },
  ports: SourceWritePorts,
): Promise<SourceRow> {
  const { start, died } = decision;
  const failure = died === undefined ? undefined : ({ code: interrupted, message: diedMessage(died) } as const);
  const status = recorded(row, { ...fetchingStatus(row, start, failure), ...defined({ lost }) }, ports);
  const next = timed({ ...row, status, version: row.version + 1 }, start.until);
  await ports.table.write([{ put: next, when: { version: row.version } }]);
  return next;
}

/**
 * Asks the invocation that fetches to poll again when it has finished.
 * @throws ConflictError when another writer was faster.
 */
export async function wantAgain(row: SourceRow, ports: SourceWritePorts): Promise<void> {
  const { fetch } = row.status;
  if (fetch === undefined || fetch.desired === true) return;
  const status: SourceStatus = { ...row.status, fetch: { ...fetch, desired: true } };
  const next: SourceRow = { ...row, status, version: row.version + 1 };
  await ports.table.write([{ put: next, when: { version: row.version } }]);
}

/** The result of a poll, for the row as it is when the poll ends. */
export type Settle = (row: SourceRow) => SourceStatus;

/**
 * Writes the result of a poll, informs the owners when the artifact has changed, sends the events of it, and then records
 * both. An invocation that dies in between leaves a row that is due and still has the owners to inform, and the events.
 * @returns whether another poll was requested meanwhile.
 * @throws ConflictError when the row has another spec or another fetch by now.
 */
export async function conclude(polled: SourceRow, settle: Settle, ports: SourceWritePorts): Promise<boolean> {
  const concerned = pinsConcerned(polled, settle(polled));
  if (concerned !== undefined) await wakePins(polled, concerned, ports);
  const { row, next } = await writeSettled(polled, settle, ports);
  const desired = isRequested(row, next.status);
  // The Sources that include it refused it meanwhile.
  if (isRecovered(row.status, next.status) && !isNews(next.status))
    await ports.sender.send(await includersOf(row, ports.table));
  const announced = await informOwners(next, ports);
  const isSent = await sendEvents(next, ports);
  if (announced === undefined && !isSent) return desired;
  const status = { ...(isSent ? withoutPending(next.status) : next.status), ...defined({ announced }) };
  const reported = timed(
    { ...next, status, version: next.version + 1 },
    desired ? watchdogAt(ports.clock.now(), 0) : undefined,
  );
  try {
    await ports.table.write([{ put: reported, when: { version: next.version } }]);
  } catch (error) {
    // The writer that was faster left the row due: another poll informs the owners and sends the events again.
    if (!isConflict(error)) throw error;
  }
  return desired;
}

/** Another spec, or a reconcile, concerns all revisions at which templates stay; a new artifact those that are not found. */
function pinsConcerned({ status }: SourceRow, next: SourceStatus): ((row: PinRow) => boolean) | undefined {
  const { observedGeneration, handledReconcile, artifact } = next;
  if (status.observedGeneration !== observedGeneration || status.handledReconcile !== handledReconcile)
    return () => true;
  const isMoved = artifact !== undefined && isOther(status.artifact, artifact);
  return isMoved ? ({ failure }) => failure !== undefined : undefined;
}

/** @returns what the owners were informed of, when that is news. */
async function informOwners(row: SourceRow, ports: SourceWritePorts): Promise<string | undefined> {
  const { artifact } = row.status;
  if (artifact === undefined || !isNews(row.status)) return undefined;
  const owners = await usersOf(row, ports.table);
  await ports.sender.send(owners);
  const { namespace, name } = row;
  const about = { kind: "Source", namespace, name, revision: artifact.revision };
  ports.log.info("a source has another artifact", { ...about, owners: owners.length });
  return announcementOf(artifact);
}

/** Events that cannot be sent now wait in the row, and hold nothing else. @returns whether some were sent. */
async function sendEvents(row: SourceRow, { events, log }: SourceWritePorts): Promise<boolean> {
  if (events === undefined) return false;
  const pending = pendingEvents(row, events.installation);
  if (pending.length === 0) return false;
  try {
    await events.bus.send(pending);
    return true;
  } catch (error) {
    const { namespace, name, status } = row;
    const reported = { code: errorCode(error), error: errorMessage(error), again: status.events?.againAt };
    log.error("events could not be sent", { kind: "Source", namespace, name, events: pending.length, ...reported });
    return false;
  }
}

/** The status with its events, in the same write. */
function recorded(row: SourceRow, status: SourceStatus, { events, clock, log }: SourceWritePorts): SourceStatus {
  if (events === undefined) return withoutPending(status);
  const after = withEvents(row.status, status, clock.now());
  const dropped = droppedEvents(row.status, after);
  const { namespace, name } = row;
  if (dropped > 0) log.error("the oldest events are dropped unsent", { kind: "Source", namespace, name, dropped });
  return after;
}

/** Keeps the fetched artifact when another writer changed the row but left this fetch in charge. */
async function writeSettled(polled: SourceRow, settle: Settle, ports: SourceWritePorts) {
  for (let row = polled; ; ) {
    const now = ports.clock.now();
    const status = recorded(row, settle(row), ports);
    const soon = isNews(status) || isRequested(row, status);
    const next = timed({ ...row, status, version: row.version + 1 }, soon ? watchdogAt(now, 0) : undefined);
    const writes: Write[] = [{ put: next, when: { version: row.version } }];
    if (status.artifact !== undefined && isOther(row.status.artifact, status.artifact)) {
      writes.push({ put: revisionRow(row, status.artifact, now.toISOString()) });
    }
    try {
      await ports.table.write(writes);
      return { row, next };
    } catch (error) {
      const fresh = isConflict(error)
        ? await ports.table.get(keys.object(row.namespace, "Source", row.name))
        : undefined;
      if (fresh === undefined || !isStillAsked(polled, fresh)) throw error;
      row = fresh;
    }
  }
}

/** True while the row names this fetch, for the same spec, and still needs it. */
function isStillAsked(polled: SourceRow, fresh: SourceRow): boolean {
  const { fetch } = polled.status;
  if (fetch === undefined || fetch.id !== fresh.status.fetch?.id) return false;
  const { reconcile, suspended } = fresh.operations;
  if (suspended !== undefined || reconcile?.number !== polled.operations.reconcile?.number) return false;
  return fresh.uid === polled.uid && fresh.generation === polled.generation;
}

function isNews({ artifact, announced }: SourceStatus): boolean {
  return artifact !== undefined && announced !== announcementOf(artifact);
}

/** Ends the fetch; the leftovers of one that died are handled after its back-off. */
function isRequested(row: SourceRow, after: SourceStatus): boolean {
  return row.status.fetch?.desired === true && after.fetch === undefined;
}

function isOther(before: Artifact | undefined, after: Artifact): boolean {
  return before === undefined || announcementOf(before) !== announcementOf(after);
}

/** `at` while something is left to do now; otherwise the Source's interval decides. */
function timed(row: SourceRow, at: string | undefined): SourceRow {
  return due(row, at ?? nextResolve(row));
}

function isRecovered(before: SourceStatus, after: SourceStatus): boolean {
  const isReady = ({ conditions }: SourceStatus) =>
    conditions.some(({ type, status }) => type === "Ready" && status === "True");
  return !isReady(before) && isReady(after);
}

/** Messages to the owners that use the Source, and to the Sources that include it. */
async function usersOf(row: SourceRow, table: Table): Promise<Message[]> {
  const range = ranges.uses(row);
  const entries = await Array.fromAsync(allItems((start) => table.query({ ...range, newer: "kept", ...start })));
  return entries.flatMap((entry): Message[] => {
    const use = keys.uses.parse(entry);
    if (use !== undefined) return [{ to: "rollout", owner: use.owner, clusters: [] }];
    const included = keys.includes.parse(entry);
    if (included === undefined) return [];
    return [{ to: "resolve", source: { namespace: row.namespace, name: included.including } }];
  });
}

async function includersOf(row: SourceRow, table: Table): Promise<Message[]> {
  return (await usersOf(row, table)).filter(({ to }) => to === "resolve");
}
