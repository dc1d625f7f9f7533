import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { assign, wakeUp } from "#functions/rollout/write/assign.ts";
import { pauseSync } from "#functions/rollout/write/pause.ts";
import type { Transaction } from "#functions/rollout/write/transaction.ts";
import { defined } from "#shared/base/defined.ts";
import { secondsOf } from "#shared/fleet/kinds/quantities.ts";
import type { Candidate, Step } from "#shared/fleet/rollout/decide.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import { followsText, portionOf } from "#shared/fleet/rollout/slot-portion.ts";
import { refOf } from "#shared/fleet/rollout/stage-runs.ts";
import { later, queuedUntil } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";

export interface Giving extends Candidate {
  readonly step: Extract<Step, { do: "assign" }>;
}

/** Writes the assignments of a cluster, and the slot that it has for them. */
export function giveSlot(transaction: Transaction, giving: Giving, ports: PlannerPorts): void {
  const { rows, step, rollout, stage, stageRun, order, only } = giving;
  const { cluster, fleet, slot, syncs } = rows;
  const { known, now } = transaction;
  const { written, goingOn, paused, isPart } = portionOf(rows, step);
  let isKnown = true;
  for (const assignment of written) {
    const before = syncs.find(({ name }) => name === assignment.name);
    isKnown &&= before !== undefined && before.desired.action !== "orphan";
    assign(transaction, { ...assignment, before }, ports);
  }
  for (const sync of paused) pauseSync(transaction, sync, { reason: followsText, at: transaction.at });
  // A Cluster that was deleted, or registered again, since it was checked gets nothing. Its assignments are forgotten
  // after that, before or after this write; for the rest a check costs as much as a write.
  if (!isKnown && fleet !== undefined)
    transaction.write({ check: keys.fleet(cluster), when: [{ attribute: "uid", equals: fleet.uid }] });
  const attempts = Object.fromEntries(written.map(({ name, desired }) => [name, desired.attempt]));
  transaction.putSlot(
    {
      cluster,
      stage,
      rollout: rollout.number,
      attempts: { ...goingOn, ...attempts },
      since: transaction.at,
      ...defined({ stageRun: stageRun && refOf(stageRun), order, restores: only && rollout.number }),
      ...(isPart ? { unwritten: true as const } : {}),
    },
    slot,
  );
  const { correlationId } = rollout;
  for (const message of wakeUp(cluster, written[0]?.desired.startAt, now))
    transaction.messages.push({ ...message, ...defined({ correlationId }) });
  // No worker that begins now can reach its deadline before.
  const first = later(now, secondsOf(relationOf(known.row).rollout.progressDeadline));
  const { deadline = first } = transaction.rolloutState;
  transaction.edit({
    deadline: deadline < first ? deadline : first,
    queuedUntil: queuedUntil(transaction.rolloutState.queuedUntil, now),
  });
}
