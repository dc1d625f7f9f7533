/**
 * The waits of an owner's clusters, and what ends each: one line each, the worst first. While the owner is
 * suspended, waits that only continue after a resume are left out. Pure.
 */

import { counted } from "#shared/base/counted.ts";
import { defined } from "#shared/base/defined.ts";
import { isRenderFailure } from "#shared/fleet/rollout/assignments.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import { withheldText } from "#shared/fleet/rollout/guard.ts";
import { rejectedNewest } from "#shared/fleet/rollout/order.ts";
import { unreadableText } from "#shared/fleet/rollout/owner-status.ts";
import { rejectedText, rejectionOf } from "#shared/fleet/rollout/rejection.ts";
import { heldText, holdInForce, keptBackBy } from "#shared/fleet/rollout/rollout-hold.ts";
import { changingOf, membersOfAll } from "#shared/fleet/rollout/slots.ts";
import { catchUpBudget, stageRunOf } from "#shared/fleet/rollout/stage-runs.ts";
import { statedText } from "#shared/fleet/rows/act-text.ts";
import { type Freeze, isInForce } from "#shared/fleet/rows/freezes-row.ts";
import type { Hold, SlotRow } from "#shared/fleet/rows/rollout-rows.ts";
import { holdOf } from "#shared/fleet/rows/sync-row.ts";
import { askedWaits } from "#shared/fleet/waits/asked-waits.ts";
import { cordonWaits } from "#shared/fleet/waits/cordon-waits.ts";
import { catchingUpText, holdWaits } from "#shared/fleet/waits/hold-waits.ts";
import { skipWaits } from "#shared/fleet/waits/skip-waits.ts";
import { assignedIn } from "#shared/fleet/waits/slot-state.ts";
import { slotWaits, workerWaits } from "#shared/fleet/waits/slot-waits.ts";
import { progressText, rollbackOf, stageWaits } from "#shared/fleet/waits/stage-waits.ts";
import { type Wait, type WaitFacts, waitingText, waitReasons } from "#shared/fleet/waits/wait.ts";

const reconcile = { verb: "reconcile" } as const;

export function waitsOf(facts: WaitFacts): readonly Wait[] {
  const waits = [
    ...suspension(facts),
    ...holdWait(facts),
    ...rejectionWaits(facts),
    ...guardWaits(facts),
    ...cordonWaits(facts, holdsOfCatchUps(facts)),
    ...skipWaits(facts),
    ...freezes(facts),
    ...unreadable(facts),
    ...askedWaits(facts),
    ...facts.rolloutState.stages.flatMap((stage, index) => stageWaits(facts, stage, index)),
    ...slotWaits(facts),
    ...workerWaits(facts),
    ...holdsOfCatchUps(facts).flatMap((hold) => holdWaits(hold, {}, facts)),
    ...catchUpWaits(facts),
    ...reconcileWait(facts),
    ...sourceWait(facts),
  ];
  const isSuspended = facts.row.operations.suspended !== undefined;
  const reported = waits.map((wait): Wait => {
    const clear = wait.clear.filter(({ verb }) => {
      // Nobody can change the pace or the stages of a user's Sync.
      if (verb === "pace" || verb === "optional") return facts.row.type === "SyncGroup" && !isSuspended;
      return !isSuspended || !["reconcile", "retry", "skip", "refresh", "rollback"].includes(verb);
    });
    return { ...wait, clear };
  });
  return reported.toSorted((a, b) => waitReasons.indexOf(a.reason) - waitReasons.indexOf(b.reason));
}

function suspension({ row: { operations } }: WaitFacts): readonly Wait[] {
  const { suspended } = operations;
  if (suspended === undefined) return [];
  const { by, at, until } = suspended;
  const message = statedText("suspended", suspended);
  return [{ reason: "suspended", blocker: by, message, since: at, ...defined({ until }), clear: [{ verb: "resume" }] }];
}

function holdWait({ row, rolloutState, now }: WaitFacts): readonly Wait[] {
  const hold = holdInForce(row, now);
  if (hold === undefined) return [];
  const { by, at, until } = hold;
  const message = heldText(hold, keptBackBy(hold, rolloutState));
  return [{ reason: "held", blocker: by, message, since: at, ...defined({ until }), clear: [{ verb: "release" }] }];
}

/** The rejected rollouts that some stage has, and the newest one when it is rejected. */
function rejectionWaits({ row, rolloutState }: WaitFacts): readonly Wait[] {
  if (row.operations.deletion !== undefined) return [];
  const { stages } = rolloutState;
  const numbers = stages.flatMap(({ current, updatingTo }) => [current, updatingTo?.rollout]);
  return [...new Set([rejectedNewest(rolloutState), ...numbers])].flatMap((number = 0): readonly Wait[] => {
    const rejection = rejectionOf(rolloutState, number);
    if (rejection === undefined) return [];
    const { by, at: since, like = number } = rejection;
    const having = stages.filter(({ current, updatingTo }) => current === number || updatingTo?.rollout === number);
    const have = having.map(({ name }) => name).join(", ");
    const where = have === "" ? "no stage takes it" : `it stays where it is, in ${have}, and goes no further`;
    const message = `rollout ${number} ${rejectedText(rejection)}; ${where}`;
    const back = having.length === 0 ? [] : rollbackOf(rolloutState, number);
    const clear = [...back, { verb: "unreject", rollout: like } as const];
    return [{ reason: "rejected", rollout: number, blocker: by, message, since, clear }];
  });
}

function guardWaits({ rolloutState: { guard } }: WaitFacts): readonly Wait[] {
  return (guard?.withheld ?? []).map((withheld): Wait => {
    const { kind, count, names, since, until, hash } = withheld;
    const clusters = kind === "templates" ? undefined : { count: kind === "objects" ? names.length : count, names };
    const clear = [{ verb: "approveGuard", hash } as const];
    return { reason: "guard", message: withheldText(withheld), since, ...defined({ until, clusters }), clear };
  });
}

function freezes({ freezeState, now, stageRuns, rolloutState, row, slots, syncs }: WaitFacts): readonly Wait[] {
  if (!freezeState.ok) return [{ reason: "frozen", message: freezeState.message, clear: [] }];
  const inForce = freezeState.freezeState.freezes.filter((freeze) => isInForce(freeze, now));
  const all = inForce.filter(({ clusters }) => clusters === undefined);
  if (all.length > 0) return all.map((freeze) => frozen(freeze, {}));
  return inForce.flatMap((freeze) => {
    const isHeld = (slot: SlotRow) =>
      assignedIn(slot, syncs.get(slot.cluster) ?? []).some((sync) => holdOf(sync)?.name === freeze.name);
    // Frozen clusters keep their slots for a while: others wait for that, or for the thaw.
    const names = slots.filter(isHeld).map(({ cluster }) => cluster);
    return [
      ...(names.length === 0 ? [] : [frozen(freeze, { clusters: { count: names.length, names } })]),
      ...rolloutState.stages.flatMap((stage) => {
        const stageRun = stageRunOf(stage, stageRuns);
        const { length: count } = stageRun?.holds.find((hold) => isBy(hold, freeze))?.clusters ?? [];
        const about = { stage: stage.name, ...defined({ rollout: stageRun?.rollout }), clusters: { count, names: [] } };
        return count === 0 ? [] : [frozen(freeze, about)];
      }),
      ...holdsOfCatchUps({ rolloutState, row })
        .filter((hold) => isBy(hold, freeze))
        .map(({ clusters: count }) => frozen(freeze, { clusters: { count, names: [] } }, catchingUpText)),
    ];
  });
}

function isBy({ cause, name }: Pick<Hold, "cause" | "name">, freeze: Freeze): boolean {
  return cause === "freeze" && name === freeze.name;
}

/** The holds of waiting catch-ups; none when none waits, or no cluster gets anything any more. */
function holdsOfCatchUps({ rolloutState, row }: Pick<WaitFacts, "rolloutState" | "row">): readonly Hold<number>[] {
  const isNone = rolloutState.catchUps.waiting === 0 || row.operations.deletion !== undefined;
  return isNone ? [] : (rolloutState.catchUpsHeld?.holds ?? []);
}

function frozen(
  { name, by, reason, clusters, at, until }: Freeze,
  where: Pick<Wait, "stage" | "rollout" | "clusters">,
  whose = "",
): Wait {
  const covered = clusters === undefined ? "every cluster" : `clusters ${clusters.text}`;
  const count = where.clusters === undefined ? "" : `${waitingText(where.clusters.count)}${whose}: `;
  const message = `${count}${name} freezes ${covered}, by ${by}: ${reason}`;
  return {
    reason: "frozen",
    ...where,
    blocker: name,
    message,
    since: at,
    ...defined({ until }),
    clear: [{ verb: "thaw", freeze: name }],
  };
}

/** Nobody changes a row of a newer version: only that version continues with it. */
function unreadable({ rolloutState }: WaitFacts): readonly Wait[] {
  const { unreadable: names = [] } = rolloutState;
  if (names.length === 0) return [];
  return [{ reason: "newer", clusters: { count: names.length, names }, message: unreadableText(names), clear: [] }];
}

/** A `reconcile` is answered when nothing is in progress any more, and every cluster was checked. */
function reconcileWait({ rolloutState, stageRuns }: WaitFacts): readonly Wait[] {
  const { checking } = rolloutState;
  if (checking === undefined) return [];
  const updatingTo = rolloutState.stages
    .map((stage) => stageRunOf(stage, stageRuns))
    .find((stageRun) => stageRun?.phase === "Updating");
  const changing = changingOf(rolloutState);
  const when =
    updatingTo !== undefined
      ? `stage ${updatingTo.stage} has finished rollout ${updatingTo.rollout}: ${progressText(updatingTo)}`
      : changing > 0
        ? `no cluster is changing: ${changing} still ${changing === 1 ? "is" : "are"}`
        : `every cluster is checked: ${checking.checked} of ${membersOfAll(rolloutState)} are`;
  const message = `a reconcile is answered when ${when}`;
  return [
    { reason: "reconcile", ...defined({ blocker: updatingTo?.stage }), message, since: checking.since, clear: [] },
  ];
}

function sourceWait({ unready }: WaitFacts): readonly Wait[] {
  return unready === undefined ? [] : [{ reason: "source", message: unready, clear: [] }];
}

/** Failed catch-ups: they are not tried again before somebody asks, or a rollout passes their stage. */
function catchUpWaits({ rolloutState, row, failedCatchUps }: WaitFacts): readonly Wait[] {
  if (row.operations.deletion !== undefined) return [];
  const { rollout } = relationOf(row);
  const pace = { verb: "pace", field: "maxFailures" } as const;
  const names = failedCatchUps.map(({ cluster }) => cluster);
  // A catch-up that could not be rendered stops no other: a failure that does is named first.
  const worst = failedCatchUps.find(({ reason }) => !isRenderFailure(reason)) ?? failedCatchUps[0];
  const why = worst === undefined ? "" : `: ${worst.cluster}: ${worst.reason}`;
  const since = failedCatchUps.map((catchUp) => catchUp.since).sort()[0];
  const stopped = rolloutState.stages.flatMap(({ name, failedCatchUps: failed, members }): readonly Wait[] => {
    const allowed = catchUpBudget(rollout, members);
    if (failed <= allowed) return [];
    const message = `no other cluster catches up: ${failed} failed (allowed: ${allowed})${why}; ${waitingText(rolloutState.catchUps.waiting)}`;
    return [
      {
        reason: "catchUps",
        stage: name,
        clusters: { count: failed, names },
        message,
        ...defined({ since }),
        clear: [reconcile, pace],
      },
    ];
  });
  const { failed } = rolloutState.catchUps;
  if (stopped.length > 0 || failed === 0) return stopped;
  const message = `${counted(failed, "cluster")} failed to catch up${why}`;
  return [
    { reason: "catchUps", clusters: { count: failed, names }, message, ...defined({ since }), clear: [reconcile] },
  ];
}
