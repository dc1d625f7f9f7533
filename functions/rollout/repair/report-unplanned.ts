import type { GivenPorts } from "#functions/rollout/read/planner-ports.ts";
import { rolloutStateFor } from "#functions/rollout/read/read-owner.ts";
import { reportedResume } from "#functions/rollout/write/assign.ts";
import { ownerWrite } from "#functions/rollout/write/transaction.ts";
import { readRow } from "#shared/adapters/read-row.ts";
import { isNewerRow, isRowTooLarge, isStuck, type StarlingError } from "#shared/base/errors.ts";
import { ownerFields } from "#shared/fleet/log-fields.ts";
import type { DesiredPlan } from "#shared/fleet/rollout/desired-plan.ts";
import { due, later, watchdogAt } from "#shared/fleet/rows/due.ts";
import { keys, type Owner } from "#shared/fleet/rows/keys.ts";
import { isNewer, type Row } from "#shared/fleet/rows/row.ts";
import { rowAt } from "#shared/fleet/rows/suspension.ts";
import type { Write } from "#shared/ports.ts";

/** Seconds until an owner that lacks a row is checked again. */
const newerSeconds = 600;

/**
 * A decision that cannot be written or read, or makes no progress, would be repeated for ever: the status tells people
 * what to make smaller, to update or to report. An owner that cannot be read itself is shown as unreadable in lists.
 */
export async function reportUnplanned(owner: Owner, error: StarlingError, ports: GivenPorts): Promise<void> {
  const { code, message } = error;
  ports.log.error("a subject cannot be planned", { ...ownerFields(owner), code, error: message });
  const stored = await readRow(ports.table, keys.object(owner.namespace, owner.kind, owner.name));
  if (stored === undefined || isNewer(stored)) return;
  const now = ports.clock.now();
  const row = rowAt(stored, now);
  const desired = { ok: false as const, reason: reasonOf(error), message };
  const write = ownerWrite(row, {
    rolloutState: rolloutStateFor(row, owner, undefined),
    stageRuns: new Map(),
    desired,
    now,
  });
  const woken = await reportedResume({ owner, row }, ports);
  const at = againAt(error, row, now);
  await ports.table.write([at !== undefined && "put" in write ? dueAgain(write, row, at) : write]);
  await ports.sender.send(woken ?? []);
}

function reasonOf(error: StarlingError): Extract<DesiredPlan, { ok: false }>["reason"] {
  if (isStuck(error)) return "NoProgress";
  return isNewerRow(error) ? "NewerRow" : "RowTooLarge";
}

/** When the owner is tried again without an event. An oversized row waits for people, whose change wakes the planner. */
function againAt(error: StarlingError, { dispatches = 0 }: Row, now: Date): string | undefined {
  if (isRowTooLarge(error)) return undefined;
  // Nobody may be there to wake it when the stack is updated.
  return isNewerRow(error) ? later(now, newerSeconds) : watchdogAt(now, dispatches);
}

/** The tick counts its dispatches: each one without progress comes later than the one before. */
function dueAgain(write: Extract<Write, { put: Row }>, { dispatches }: Row, at: string): Write {
  return { ...write, put: due(write.put, at, dispatches) };
}
