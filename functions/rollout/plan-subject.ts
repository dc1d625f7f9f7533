/**
 * The planner's story: read everything, decide purely, write everything, then send. It is the only writer of heads,
 * rollouts, targets and assignments, and works on one subject until there is nothing more to decide for now.
 */
import { advanceRollout } from "#functions/rollout/advance-rollout.ts";
import { rememberingBlobs } from "#functions/rollout/fleet.ts";
import { passOnReconcile } from "#functions/rollout/pass-on-reconcile.ts";
import type { PlannerPorts, Step } from "#functions/rollout/planner-ports.ts";
import { readSubject } from "#functions/rollout/read-subject.ts";
import { isMended } from "#functions/rollout/rendered-since.ts";
import { sealRollout } from "#functions/rollout/seal-rollout.ts";
import { farewell, idle } from "#functions/rollout/settle-subject.ts";
import { isSuperseded, startRollout, supersede } from "#functions/rollout/start-rollout.ts";
import { subjectWrite } from "#functions/rollout/subject-write.ts";
import type { Subject } from "#shared/domain/rows/keys.ts";
import { isConflict, isRowTooLarge, type StarlingError } from "#shared/errors.ts";

/** A subject that needs more steps than this in one go is looked at again by its next message or its watchdog. */
const MAX_STEPS = 500;
const MAX_CONFLICTS = 20;

export async function planSubject(subject: Subject, ports: PlannerPorts): Promise<void> {
  const steady = { ...ports, blobs: rememberingBlobs(ports.blobs) };
  let conflicts = 0;
  for (let step = 0; step < MAX_STEPS; step++) {
    try {
      const { messages, again } = await planOnce(subject, steady);
      await ports.sender.send(messages);
      if (!again) return;
    } catch (error) {
      if (isRowTooLarge(error)) return tellTooLarge(subject, error, steady);
      if (!isConflict(error) || ++conflicts > MAX_CONFLICTS) throw error;
    }
  }
  ports.log.warn("a subject needs more steps than one invocation gives", { ...subject });
}

/** What cannot be written would be decided again for ever: people are told what to make smaller, where they look. */
async function tellTooLarge(subject: Subject, error: StarlingError, ports: PlannerPorts): Promise<void> {
  ports.log.error("a row of the planner is too large", { ...subject, error: error.message });
  const known = await readSubject(subject, ports);
  if (known === undefined) return;
  const waiting = { ok: false, reason: "RowTooLarge", message: error.message } as const;
  await ports.table.write([subjectWrite(known.row, { now: ports.clock.now(), waiting })]);
}

async function planOnce(subject: Subject, ports: PlannerPorts): Promise<Step> {
  const known = await readSubject(subject, ports);
  if (known === undefined) return { messages: [], again: false };
  const { rollout } = known;
  if (rollout !== undefined && (isSuperseded(known, rollout) || (await isMended(known, rollout, ports))))
    return supersede(known, rollout, ports);
  if (rollout?.phase === "Planning") return sealRollout(known, rollout, ports);
  if (rollout !== undefined) return advanceRollout(known, rollout, ports);
  if (known.row.operations.deletion !== undefined && (known.head?.templates ?? []).length === 0)
    return farewell(known, ports);
  const started = await startRollout(known, ports);
  if (started !== undefined) return started;
  const passed = await passOnReconcile(known, ports);
  return passed ?? idle(known, ports);
}
