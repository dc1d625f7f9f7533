import { askRenderings } from "#functions/rollout/ask-renderings.ts";
import {
  assignedAtOnce,
  type Candidate,
  decide,
  itsTurn,
  readRenderings,
  type Step,
} from "#functions/rollout/decide.ts";
import { forgetAssigned } from "#functions/rollout/forget.ts";
import { giveSlot } from "#functions/rollout/give-slot.ts";
import { readMembers } from "#functions/rollout/members.ts";
import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import { listCheck } from "#functions/rollout/stage-now.ts";
import type { Transaction } from "#functions/rollout/transaction.ts";
import { digestOf } from "#shared/base/digest.ts";
import type { RenderingRequest } from "#shared/fleet/rollout/assignments.ts";
import { relationOf, snapshotTarget } from "#shared/fleet/rollout/desired-plan.ts";
import { ownRoom } from "#shared/fleet/rollout/slots.ts";
import { verdictOf } from "#shared/fleet/rollout/stage-runs.ts";
import type { StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";

export interface Turns<Next extends Candidate> {
  /** Those who may be next, in this order. */
  readonly candidates: readonly Next[];
  /** How many of them may get one. */
  readonly slots: number;
  /** Notes what was decided about one: in a leg's lists, or of an arrival. */
  readonly note: (next: Next, step: Step) => void;
}

/** What is decided about each is done, as far as there are slots and room; what they wait for is asked to be rendered. */
export async function takeStageTurns<Next extends Candidate>(
  transaction: Transaction,
  { candidates, slots, note }: Turns<Next>,
  ports: PlannerPorts,
): Promise<void> {
  const targets = candidates.map(({ target }) => target);
  const renderings = await readRenderings(targets, ports.table);
  const isMissed = missedCheck(transaction, ports);
  const requests: RenderingRequest[] = [];
  let [left, isLast] = [slots, false];
  for (const candidate of candidates) {
    const { rows, stageRun, order = 0 } = candidate;
    // Nobody new is passed by: a leg knows the last that was looked at, and not who of them was not.
    if (isLast && stageRun !== undefined && order >= stageRun.next) continue;
    const decided = decide(candidate, renderings, transaction);
    const step = (await isMissed(candidate, decided)) ? itsTurn : withinBound(candidate, decided, transaction);
    if (transaction.room() < 4 + assignedAtOnce(step, rows)) break;
    if (step.do === "assign") {
      // What failed in this very step may be more than it may bear.
      if (stageRun !== undefined && isOverBudget(transaction, stageRun)) break;
      // Who keeps a slot that another stage gave may have taken the last of what its own bound allows.
      isLast =
        rows.slot === undefined &&
        (left === 0 || (stageRun !== undefined && isFull(transaction, candidate.stage, stageRun.size)));
      if (isLast) continue;
      if (rows.slot === undefined) left--;
      giveSlot(transaction, { ...candidate, step }, ports);
    }
    if (step.do === "assign" || step.do === "leave")
      forgetAssigned(transaction, { syncs: step.leaving, as: "deselected" }, ports);
    if (step.do === "forget") forgetAssigned(transaction, { syncs: step.syncs, as: "gone" }, ports);
    if (step.do === "wait") requests.push(...step.requests);
    if (step.do === "away") transaction.cannotRead(rows.cluster);
    note(candidate, step);
  }
  await askRenderings(transaction, { requests, renderings: renderings.rows }, ports);
}

/**
 * Whether it would be done for what a cluster is at the moment, of which the list of members may never tell: a target that is
 * passed by, or one that comes to a stage, and is in another or rendered from something else by the list.
 */
function missedCheck({ known }: Transaction, ports: PlannerPorts) {
  const isListNew = listCheck(known, ports.table);
  return async ({ stageRun, target, stage, rollout }: Candidate, { do: what }: Step): Promise<boolean> => {
    const isWait = what === "wait" || what === "freeze" || what === "away";
    if (isWait || (stageRun !== undefined && what !== "skip") || (await isListNew())) return false;
    if (stageRun !== undefined) return true;
    const member = (await readMembers(known, ports)).find(({ cluster }) => cluster === target.cluster);
    return member?.stage !== stage || digestOf(snapshotTarget(member, rollout.plan)) !== digestOf(target);
  };
}

/**
 * Of those who come to a stage no more are begun than its own bound allows, nor of its leg's targets in a slot that another
 * stage gave; a leg is given no more slots than that.
 */
function withinBound({ stageRun, stage, rows: { slot } }: Candidate, step: Step, transaction: Transaction): Step {
  if (step.do !== "assign") return step;
  if (stageRun === undefined) return isFull(transaction, stage) ? { do: "wait", for: "bound", requests: [] } : step;
  const isElsewhere = slot !== undefined && slot.stage !== stage;
  return isElsewhere && isFull(transaction, stage, stageRun.size) ? itsTurn : step;
}

/** As many change in the stage as its own bound allows. */
export function isFull(
  { rolloutState, known }: Pick<Transaction, "rolloutState" | "known">,
  name: string,
  size?: number,
): boolean {
  const stage = rolloutState.stages.find((one) => one.name === name);
  const own = relationOf(known.row).rollout.stages.find((one) => one.name === name)?.maxConcurrent;
  return stage !== undefined && ownRoom(stage, own, size) <= 0;
}

function isOverBudget(transaction: Transaction, stageRun: StageRunRow): boolean {
  const deletion = transaction.rollout(stageRun.rollout).plan.deletion !== undefined;
  const { rollout } = relationOf(transaction.known.row);
  return verdictOf(transaction.stageRun(stageRun) ?? stageRun, rollout, { deletion }).phase === "Halted";
}
