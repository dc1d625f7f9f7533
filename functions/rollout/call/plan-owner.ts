/**
 * The planner's loop: it reads the facts, decides, writes, and sends; and repeats that until nothing more is to be
 * decided for now. It is the only writer of rollout states, rollouts, stage runs, slots, targets, catch-ups and
 * assignments.
 */
import { decideNext, plannerSteps } from "#functions/rollout/call/planner-steps.ts";
import { beginCall, type CallWork, isOfAll, isOver, type PlannerCall } from "#functions/rollout/read/begin-call.ts";
import { type GivenPorts, listsIn, type PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { readOwner } from "#functions/rollout/read/read-owner.ts";
import { reportUnplanned } from "#functions/rollout/repair/report-unplanned.ts";
import { noteDesired } from "#functions/rollout/steps/idle/go-idle.ts";
import { reports, type Transaction } from "#functions/rollout/write/transaction.ts";
import { isConflict, isNewerRow, isRowTooLarge, isStuck, StarlingError } from "#shared/base/errors.ts";
import { inParts } from "#shared/base/in-parts.ts";
import { stageRunFields } from "#shared/fleet/log-fields.ts";
import type { Known } from "#shared/fleet/rollout/facts.ts";
import type { Owner } from "#shared/fleet/rows/keys.ts";
import type { SlotRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { RolloutMessage } from "#shared/messages.ts";

const maxConflicts = 20;

/** A message has 256 KB, and a name at most 63 bytes. */
const mostNamed = 1000;

/** @param steps - another order of the steps than that of the table, in tests. */
export async function planOwner(
  owner: Owner,
  call: PlannerCall,
  given: GivenPorts,
  steps = plannerSteps,
): Promise<void> {
  const ports = { ...given, lists: listsIn(given.blobs) };
  let conflicts = 0;
  let known: Known | undefined;
  let work: CallWork | undefined;
  for (;;) {
    if (isOver(call, ports)) {
      await ports.sender.send(leftOf(work, call).map((left) => ({ to: "rollout", owner, ...left })));
      return;
    }
    try {
      known ??= await readOwner(owner, ports);
      if (known === undefined) return;
      if (work === undefined) await ports.sender.send(reports(owner, known.rolloutState.pendingReports));
      work ??= await beginCall(known, call, ports);
      const before = remainingOf(work);
      const { step, transaction } = await decideNext(known, work, ports, steps);
      if (transaction === "done") return;
      requireProgress({ step, transaction }, before, remainingOf(work));
      if (transaction.hasChanged()) {
        // The call may end before it is idle, and something else may be desired in the next one.
        noteDesired(transaction);
        known = await transaction.commit(ports.table);
      }
      await ports.sender.send(transaction.messages);
      reportWork(transaction, ports);
    } catch (error) {
      if (isRowTooLarge(error) || isNewerRow(error) || isStuck(error)) return reportUnplanned(owner, error, ports);
      if (!isConflict(error) || ++conflicts > maxConflicts) throw error;
      [known, work] = [undefined, undefined];
    }
  }
}

/** The number of clusters that got work; each has its own lines. */
function reportWork({ known: { owner }, rolloutState, messages }: Transaction, { log }: PlannerPorts): void {
  const [apply, render] = (["apply", "render"] as const).map((to) => messages.filter((each) => each.to === to).length);
  if (apply === 0 && render === 0) return;
  log.info("the planner requests work", { ...stageRunFields({ owner, rollout: rolloutState.last }), apply, render });
}

/**
 * The next call's message: the clusters that were not asked yet, and whether something may be rendered. A full check
 * continues after the clusters that were asked. It checks all slots once more, because only all of them together tell
 * that a stage is held.
 */
function leftOf(work: CallWork | undefined, call: PlannerCall): readonly Pick<RolloutMessage, "clusters" | "after">[] {
  const { round, answering = [...(call.clusters ?? [])], asked = [] } = work ?? {};
  const isWhole = work === undefined ? isOfAll(call) : work.round.all && !work.isFed;
  const slots = isWhole ? [] : (round?.slots ?? []).map(({ cluster }) => cluster);
  const [, after = ""] = [call.after ?? "", asked[asked.length - answering.length - 1] ?? ""].sort();
  const named = new Set([...slots, ...answering.filter((cluster) => !isWhole || cluster <= after)]);
  const parts = inParts([...named], mostNamed).map((clusters) => ({ clusters: [...clusters] }));
  if (isWhole) return [after === "" ? {} : { after }, ...parts];
  const { isRendered = call.rendered === true } = work ?? {};
  return parts.length === 0 ? [{ clusters: [] }] : [...parts, ...(isRendered ? [{ clusters: [] }] : [])];
}

/** The remaining work of a call: every step that writes nothing reduces it, or records what it checked. */
function remainingOf({ round, answering, waiting, catchUps }: CallWork): Remaining {
  return { slot: round.slots[0], counts: [round.slots.length, answering.length, waiting.size, catchUps.size] };
}

/** The remaining work of a call. */
export interface Remaining {
  /** The first cluster that has to be checked. */
  readonly slot: SlotRow | undefined;
  readonly counts: readonly number[];
}

/** @throws StarlingError `NoProgress` when a step changed nothing: the call would repeat the step for ever. */
export function requireProgress(
  { step, transaction }: { readonly step: string; readonly transaction: Transaction },
  before: Remaining,
  after: Remaining,
): void {
  const isSame = before.counts.join() === after.counts.join();
  if (!isSame || transaction.isNews()) return;
  const { rolloutState, known } = transaction;
  const { slot } = before;
  const row = slot === undefined ? `${rolloutState.pk} ${rolloutState.sk}` : `${slot.pk} ${slot.sk}`;
  const size = slot === undefined ? "" : ` (attempts: ${Object.keys(slot.attempts).length})`;
  const message = `the planner's step ${step} changes nothing for ${known.owner.name}: row ${row}${size}; it is tried again, ever later`;
  throw new StarlingError(message, { code: "NoProgress", retry: "transient", data: { step, row } });
}
