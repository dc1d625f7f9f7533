import { type CallWork, isOver } from "#functions/rollout/read/begin-call.ts";
import { listCheck } from "#functions/rollout/read/fleet.ts";
import { targetsWithInputs } from "#functions/rollout/read/inputs-before.ts";
import { type PlannerPorts, readMembers } from "#functions/rollout/read/planner-ports.ts";
import { readRenderings } from "#functions/rollout/read/read-clusters.ts";
import { askRenderings } from "#functions/rollout/write/ask-renderings.ts";
import { forgetAssigned, giveSlot } from "#functions/rollout/write/assign.ts";
import type { Transaction } from "#functions/rollout/write/transaction.ts";
import { digestOf } from "#shared/base/digest.ts";
import { advance, stageRunFacts } from "#shared/fleet/rollout/advance.ts";
import type { RenderingRequest } from "#shared/fleet/rollout/assignments.ts";
import { assignedAtOnce, type Candidate, decide, heldByWorker, type Step } from "#shared/fleet/rollout/decide.ts";
import { isFull } from "#shared/fleet/rollout/holding.ts";
import { zoneOfEntry } from "#shared/fleet/rows/cluster-entry.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";
import type { StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";

/** What waits for slots: the targets of a stage run, or the catch-ups. */
export interface Queue<Next extends Candidate> {
  /** Clusters whose turn may have come, in their order. */
  readonly pages: AsyncIterable<readonly Next[]>;
  /** Records the decision about one: in a stage run's lists, or for a catch-up. */
  readonly note: (next: Next, step: Step) => void;
  /**
   * Records the end of a page. @param hasActed - something is written or requested because of it. @returns whether it is
   * worth checking the next page.
   */
  readonly goesOn: (page: readonly Next[], hasActed: boolean) => boolean;
}

/** The work of a call that fills slots. */
export interface Filling {
  readonly work: CallWork;
  /** Number of new slots; without any, a cluster may still continue in a slot that it has. */
  readonly slots: number;
}

/**
 * Number of clusters in a page: as many as there are free slots, if their rows fit into the transaction, and five more,
 * because some clusters need no slot.
 */
export function mostNext(transaction: Transaction, slots: number): number {
  const fitting = Math.floor(transaction.room() / (transaction.rolloutState.templates.length + 2));
  return Math.min(60, Math.min(slots, fitting) + 5);
}

/** Those that have to wait are skipped: the ones behind them may not have to. */
export async function fillFrom<Next extends Candidate>(
  transaction: Transaction,
  { queue, work, slots }: Filling & { readonly queue: Queue<Next> },
  ports: PlannerPorts,
): Promise<void> {
  for await (const page of queue.pages) {
    await takeTurns(transaction, { page, slots, note: queue.note, work }, ports);
    const hasActed = transaction.hasChanged() || transaction.messages.length > 0;
    if (!queue.goesOn(page, hasActed) || isOver(work, ports)) return;
  }
}

/** Carries out each decision as far as slots and room suffice, and requests the missing renderings. */
async function takeTurns<Next extends Candidate>(
  transaction: Transaction,
  { page: candidates, slots, note, work }: Pick<Queue<Next>, "note"> & Filling & { page: readonly Next[] },
  ports: PlannerPorts,
): Promise<void> {
  const targets = candidates.map(({ target }) => target);
  const renderings = await readRenderings(targets, ports.table);
  const isMissed = missedCheck(transaction, ports);
  const requests: RenderingRequest[] = [];
  let [left, isLast] = [slots, false];
  for (const candidate of candidates) {
    const { rows, stageRun, order = 0 } = candidate;
    // No new target is skipped: a stage run knows the last checked one, not which of them was not.
    if (isLast && stageRun !== undefined && order >= stageRun.next) continue;
    const decided = decide(candidate, renderings, transaction);
    const step = (await isMissed(candidate, decided)) ? heldByWorker : withinBound(candidate, decided, transaction);
    if (transaction.room() < 4 + assignedAtOnce(step, rows)) break;
    if (step.do === "assign") {
      // The failures of this very step may exceed its budget.
      if (stageRun !== undefined && isOverBudget(transaction, stageRun)) break;
      // A cluster that keeps a slot of another stage may have used up the stage's own bound.
      isLast =
        rows.slot === undefined &&
        (left === 0 || (stageRun !== undefined && isFull(transaction, candidate.stage, stageRun.size)));
      if (isLast) continue;
      if (rows.slot === undefined) left--;
      const given = giveSlot(transaction, { ...candidate, step }, ports);
      // The same call takes the slot back, for clusters of other zones.
      if (isInDownZone(rows.fleet, transaction)) work.round.slots.push(given);
    }
    if (step.do === "assign" || step.do === "leave")
      forgetAssigned(transaction, { syncs: step.leaving, as: "deselected" }, ports);
    if (step.do === "forget") forgetAssigned(transaction, { syncs: step.syncs, as: "gone" }, ports);
    if (step.do === "hold") requests.push(...step.requests);
    if (step.do === "away") transaction.cannotRead(rows.cluster);
    note(candidate, step);
  }
  await askRenderings(transaction, { requests, renderings: renderings.rows }, ports);
}

function isInDownZone(fleet: FleetRow | undefined, { rolloutState: { downZones = [] } }: Transaction): boolean {
  return fleet !== undefined && downZones.some(({ zone }) => zone === zoneOfEntry(fleet));
}

/**
 * Whether the decision depends on a state of the cluster that the list of members may never show: a target that is
 * skipped, or a catch-up that the list has in another stage or with other inputs.
 */
function missedCheck({ known }: Transaction, ports: PlannerPorts) {
  const isListNew = listCheck(known, ports.table);
  const targetOf = targetsWithInputs(known.owner, ports);
  return async ({ stageRun, target, stage, rollout }: Candidate, { do: what }: Step): Promise<boolean> => {
    const isWait = what === "hold" || what === "away";
    if (isWait || (stageRun !== undefined && what !== "skip") || (await isListNew())) return false;
    if (stageRun !== undefined) return true;
    const member = (await readMembers(known, ports)).find(({ cluster }) => cluster === target.cluster);
    if (member === undefined) return true;
    return member.stage !== stage || digestOf(await targetOf(member, rollout)) !== digestOf(target);
  };
}

/**
 * A stage begins no more catch-ups than its own bound allows, nor targets in a slot of another stage; a stage run gets
 * no more slots than that.
 */
function withinBound({ stageRun, stage, rows: { slot } }: Candidate, step: Step, transaction: Transaction): Step {
  if (step.do !== "assign") return step;
  if (stageRun === undefined)
    return isFull(transaction, stage) ? { do: "hold", cause: "bound", name: stage, requests: [] } : step;
  const isElsewhere = slot !== undefined && slot.stage !== stage;
  return isElsewhere && isFull(transaction, stage, stageRun.size) ? heldByWorker : step;
}

function isOverBudget(transaction: Transaction, stageRun: StageRunRow): boolean {
  const { known, rolloutState } = transaction;
  const facts = stageRunFacts({ ...known, rolloutState }, stageRun);
  return advance(transaction.stageRun(stageRun) ?? stageRun, facts).phase === "Halted";
}
