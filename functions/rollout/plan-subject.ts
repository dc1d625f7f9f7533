/**
 * The planner's story: read everything, decide purely, write everything, then send. It is the only writer of heads,
 * rollouts, targets and assignments, and works on one subject until there is nothing more to decide for now.
 */

import { advanceRollout } from "#functions/rollout/advance-rollout.ts";
import { rememberingBlobs } from "#functions/rollout/fleet.ts";
import { passOnReconcile } from "#functions/rollout/pass-on-reconcile.ts";
import type { PlannerPorts, Step } from "#functions/rollout/planner-ports.ts";
import { type Known, readSubject } from "#functions/rollout/read-subject.ts";
import { isMended } from "#functions/rollout/rendered-since.ts";
import { sealRollout } from "#functions/rollout/seal-rollout.ts";
import { farewell, idle } from "#functions/rollout/settle-subject.ts";
import { isSuperseded, startRollout, supersede } from "#functions/rollout/start-rollout.ts";
import { subjectWrite } from "#functions/rollout/subject-write.ts";
import { readRow } from "#shared/adapters/read-row.ts";
import { isBlobLost, isConflict, isNewerRow, isRowTooLarge, type StarlingError } from "#shared/base/errors.ts";
import { due, later } from "#shared/fleet/rows/due.ts";
import { keys, type Subject } from "#shared/fleet/rows/keys.ts";
import type { RolloutRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer, type Row } from "#shared/fleet/rows/row.ts";
import type { Write } from "#shared/ports.ts";

/** A subject that needs more steps than this in one go is looked at again by its next message or its watchdog. */
const maxSteps = 500;
const maxConflicts = 20;
/** Until a subject that lacks a row is looked at again. */
const newerSeconds = 600;

export async function planSubject(subject: Subject, ports: PlannerPorts): Promise<void> {
  const steady = { ...ports, blobs: rememberingBlobs(ports.blobs) };
  let conflicts = 0;
  for (let step = 0; step < maxSteps; step++) {
    try {
      const { messages, again } = await planOnce(subject, steady);
      await ports.sender.send(messages);
      if (!again) return;
    } catch (error) {
      if (isRowTooLarge(error) || isNewerRow(error)) return tell(subject, error, steady);
      if (!isConflict(error) || ++conflicts > maxConflicts) throw error;
    }
  }
  ports.log.warn("a subject needs more steps than one invocation gives", { ...subject });
}

/**
 * What cannot be written, or read, would be tried again for ever: people are told what to make smaller, or to update,
 * where they look. A subject that cannot be read itself is shown as what it is by whoever lists it.
 */
async function tell(subject: Subject, error: StarlingError, ports: PlannerPorts): Promise<void> {
  const { code, message } = error;
  ports.log.error("a subject cannot be planned", { ...subject, code, error: message });
  const key = keys.object(subject.namespace, subject.kind, subject.name);
  const row = await readRow(ports.table, key);
  if (row === undefined || isNewer(row)) return;
  const now = ports.clock.now();
  const reason = isNewerRow(error) ? "NewerRow" : "RowTooLarge";
  const write = subjectWrite(row, { now, waiting: { ok: false, reason, message } });
  await ports.table.write([isNewerRow(error) && "put" in write ? again(write, now) : write]);
}

/** Nobody may be there to wake it when the stack is updated. */
function again(write: Extract<Write, { put: Row }>, now: Date): Write {
  return { ...write, put: due(write.put, later(now, newerSeconds)) };
}

/** What is lost while it is planned is planned anew: nothing of it was assigned. */
async function sealOrBegin(known: Known, rollout: RolloutRow, ports: PlannerPorts): Promise<Step> {
  try {
    return await sealRollout(known, rollout, ports);
  } catch (error) {
    if (!isBlobLost(error) || !known.desired.ok) throw error;
    return supersede(known, rollout, ports);
  }
}

async function planOnce(subject: Subject, ports: PlannerPorts): Promise<Step> {
  const known = await readSubject(subject, ports);
  if (known === undefined) return { messages: [], again: false };
  const { rollout } = known;
  if (rollout !== undefined && (isSuperseded(known, rollout) || (await isMended(known, rollout, ports))))
    return supersede(known, rollout, ports);
  if (rollout?.phase === "Planning") return sealOrBegin(known, rollout, ports);
  if (rollout !== undefined) return advanceRollout(known, rollout, ports);
  if (known.row.operations.deletion !== undefined && (known.head?.templates ?? []).length === 0)
    return farewell(known, ports);
  const started = await startRollout(known, ports);
  if ("messages" in started) return started;
  const passed = await passOnReconcile(known, ports);
  return passed ?? idle(known, started.unreadable, ports);
}
