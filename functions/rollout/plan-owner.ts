/**
 * The planner's loop: it reads the facts, decides, writes, and sends; and repeats that until nothing more is to be
 * decided for now. It is the only writer of rollout states, rollouts, stage runs, slots, targets, catch-ups and
 * assignments.
 */

import { collectPast } from "#functions/rollout/collect-past.ts";
import { deletion, forgetOwner, isGoing } from "#functions/rollout/delete-owner.ts";
import { endStageRuns } from "#functions/rollout/end-stage-runs.ts";
import { fillSlots } from "#functions/rollout/fill-slots.ts";
import { type Filling, isOver, type Waiting } from "#functions/rollout/fill-stage-run.ts";
import { followReconcile, startReconcile } from "#functions/rollout/follow-reconcile.ts";
import { noteDesired, rest } from "#functions/rollout/idle.ts";
import { listsIn } from "#functions/rollout/lists.ts";
import { refreshMembers } from "#functions/rollout/members.ts";
import { type Remaining, requireProgress } from "#functions/rollout/no-progress.ts";
import type { GivenPorts, PlannerPorts } from "#functions/rollout/planner-ports.ts";
import { type Known, readOwner } from "#functions/rollout/read-owner.ts";
import { renewOwnerBlobs } from "#functions/rollout/renew-owner-blobs.ts";
import { repairList } from "#functions/rollout/repair-list.ts";
import { reportUnplanned } from "#functions/rollout/report-unplanned.ts";
import { type Answering, mayAnswerAgain, restartReturned } from "#functions/rollout/restart-returned.ts";
import { restoreTemplates } from "#functions/rollout/restore-templates.ts";
import { retryRendered } from "#functions/rollout/retry-rendered.ts";
import { runJob } from "#functions/rollout/run-job.ts";
import { type Round, settleSlots, slotsToCheck } from "#functions/rollout/settle-slots.ts";
import { startNextStageRun } from "#functions/rollout/start-stage-run.ts";
import { reports, type Transaction } from "#functions/rollout/transaction.ts";
import { wakeResumed } from "#functions/rollout/wake-resumed.ts";
import { isConflict, isNewerRow, isRowTooLarge, isStuck, unlessLost } from "#shared/base/errors.ts";
import { inParts } from "#shared/base/in-parts.ts";
import { stageRunFields } from "#shared/fleet/log-fields.ts";
import type { Owner } from "#shared/fleet/rows/keys.ts";
import type { RolloutMessage } from "#shared/messages.ts";

const maxConflicts = 20;
/** A message has 256 KB, and a name at most 63 bytes. */
const mostNamed = 1000;

/** The messages that one call of the planner answers. */
export interface PlannerCall {
  /** Reported clusters; undefined for any. */
  readonly clusters?: ReadonlySet<string>;
  /** A full check continues: clusters that may answer again, by name, were asked up to this one. */
  readonly after?: string;
  /** A message named no cluster, as renderers' messages do: something may be rendered by now. */
  readonly rendered?: boolean;
  /** The call stops then, and requests another one. */
  readonly until: Date;
}

/** The work of this call, and what of it was done. */
interface Check {
  readonly round: Round;
  /** Clusters that may answer again, by name; and those of them that were not asked yet. */
  readonly asked: readonly string[];
  readonly answering: Answering["answering"];
  /** The states that were read of these clusters. */
  readonly states: Answering["states"];
  /** All slots have been checked, which determines what stages take. */
  isFed: boolean;
  readonly until: Date;
  readonly waiting: Waiting;
  readonly catchUps: Filling["catchUps"];
  readonly isRendered: Filling["isRendered"];
}

export async function planOwner(owner: Owner, call: PlannerCall, given: GivenPorts): Promise<void> {
  const ports = { ...given, lists: listsIn(given.blobs) };
  let conflicts = 0;
  let known: Known | undefined;
  let check: Check | undefined;
  for (;;) {
    if (isOver({ ports, until: call.until })) {
      await ports.sender.send(leftOf(check, call).map((left) => ({ to: "rollout", owner, ...left })));
      return;
    }
    try {
      known ??= await readOwner(owner, ports);
      if (known === undefined) return;
      if (check === undefined) await ports.sender.send(reports(owner, known.rolloutState.pendingReports));
      check ??= await beginScan(known, call, ports);
      const before = remainingOf(check);
      const { step, transaction } = await decideNext(known, check, ports);
      if (transaction === "done") return;
      requireProgress({ step, transaction }, before, remainingOf(check));
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
      [known, check] = [undefined, undefined];
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
function leftOf(check: Check | undefined, call: PlannerCall): readonly Pick<RolloutMessage, "clusters" | "after">[] {
  const { round, answering = [...(call.clusters ?? [])], asked = [] } = check ?? {};
  const isWhole = check === undefined ? isOfAll(call) : check.round.all && !check.isFed;
  const slots = isWhole ? [] : (round?.slots ?? []).map(({ cluster }) => cluster);
  const [, after = ""] = [call.after ?? "", asked[asked.length - answering.length - 1] ?? ""].sort();
  const named = new Set([...slots, ...answering.filter((cluster) => !isWhole || cluster <= after)]);
  const parts = inParts([...named], mostNamed).map((clusters) => ({ clusters: [...clusters] }));
  if (isWhole) return [after === "" ? {} : { after }, ...parts];
  const { isRendered = call.rendered === true } = check ?? {};
  return parts.length === 0 ? [{ clusters: [] }] : [...parts, ...(isRendered ? [{ clusters: [] }] : [])];
}

function isOfAll({ clusters, after }: PlannerCall): boolean {
  return clusters === undefined || after !== undefined;
}

async function beginScan(known: Known, call: PlannerCall, { table }: PlannerPorts): Promise<Check> {
  // A person asks for a check because messages may be lost.
  const isAsked = known.row.operations.reconcile?.number !== known.rolloutState.handledReconcile;
  const clusters = isAsked || isOfAll(call) ? undefined : call.clusters;
  const round = await slotsToCheck(known, clusters, table);
  // A cluster with a slot shows by that slot whether it answers.
  const others = clusters?.difference(new Set(round.slots.map(({ cluster }) => cluster)));
  const again = new Set([...(await mayAnswerAgain(known, others, table)), ...round.unread]);
  const { after = "" } = call;
  const asked = [...again].filter((cluster) => cluster > after || call.clusters?.has(cluster)).sort();
  const isRendered = call.rendered === true || clusters === undefined || clusters.size === 0;
  const fresh = { isFed: false, waiting: new Set<string>(), catchUps: new Map(), states: new Map() };
  return { ...fresh, round, asked, answering: [...asked], isRendered, until: call.until };
}

/** The decision of a step, and the step's name. */
interface Decided {
  readonly step: string;
  /** `done`: nothing more is to be decided for now. */
  readonly transaction: Transaction | "done";
}

async function decideNext(known: Known, check: Check, ports: PlannerPorts): Promise<Decided> {
  const repaired = async () => ({ step: "repairList", transaction: await repairList(known, ports) });
  return unlessLost(nextOrRest(known, check, ports), repaired);
}

async function nextOrRest(known: Known, check: Check, ports: PlannerPorts): Promise<Decided> {
  for (const [step, take] of stepsOf(known, check, ports)) {
    const transaction = await take();
    if (transaction !== undefined) return { step, transaction };
  }
  return { step: "rest", transaction: await rest(known, { ...check.round, states: check.states }, ports) };
}

type Step = readonly [name: string, take: () => MaybeStep | Promise<MaybeStep>];
type MaybeStep = Transaction | "done" | undefined;

/** The first step of this list that has something to do. A step is `done` when the owner is gone. */
function stepsOf(known: Known, check: Check, ports: PlannerPorts): readonly Step[] {
  if (isGoing(known, "orphan")) return [["forgetOwner", () => forgetOwner(known, ports)]];
  return [
    ["wakeResumed", () => wakeResumed(known, ports)],
    ["settleSlots", () => settleSlots(known, check.round, ports)],
    ["restartReturned", () => restartReturned(known, check, ports)],
    ["restoreTemplates", () => restoreTemplates(known, ports)],
    // Jobs come first: a list of members that is computed while they run would add to them.
    ["runJob", () => runJob(known, ports)],
    ["refreshMembers", () => refreshMembers(known, ports)],
    ["endStageRuns", () => endStageRuns(known, ports)],
    ["retryRendered", () => (check.isRendered ? retryRendered(known, check.waiting, ports) : undefined)],
    ["startNextStageRun", () => startNextStageRun(known, check.round, ports)],
    ["startReconcile", () => startReconcile(known, ports)],
    [
      "fillSlots",
      () => {
        check.isFed = true;
        return fillSlots(known, { ...check, all: check.round.all, ports });
      },
    ],
    ["followReconcile", () => followReconcile(known, ports)],
    ["collectPast", () => collectPast(known, ports)],
    ["renewBlobs", () => renewOwnerBlobs(known, ports)],
    ["deletion", () => (isGoing(known, "delete") ? deletion(known, ports) : undefined)],
  ];
}

/** The remaining work of a call: every step that writes nothing reduces it, or records what it checked. */
function remainingOf({ round, answering, waiting, catchUps }: Check): Remaining {
  return { slot: round.slots[0], counts: [round.slots.length, answering.length, waiting.size, catchUps.size] };
}
