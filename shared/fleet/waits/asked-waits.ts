/** Requests of people that are not started yet: until then a stage that stands still may continue in a moment. Pure. */
import { defined } from "#shared/base/defined.ts";
import { advance, stageRunFacts } from "#shared/fleet/rollout/advance.ts";
import { newTargetActs } from "#shared/fleet/rollout/gate-acts.ts";
import { newRejections } from "#shared/fleet/rollout/rejection.ts";
import { isStalled, stageRunOf } from "#shared/fleet/rollout/stage-runs.ts";
import type { Act, GateAct, Operations, SourceRow } from "#shared/fleet/rows/object-rows.ts";
import type { Wait, WaitFacts } from "#shared/fleet/waits/wait.ts";

const verbs = {
  suspended: "suspend",
  resumed: "resume",
  reconcile: "reconcile",
  refresh: "refresh",
  hold: "rollout hold",
  released: "rollout release",
  exempt: "rollout exempt",
  unexempted: "rollout unexempt",
  guard: "guard approve",
  rollback: "rollout rollback",
  recovered: "recover",
  deletion: "deletion",
} as const satisfies Record<
  Exclude<keyof Operations, "accepted" | "cordoned" | "uncordoned" | "uploads" | "gates" | "rejections" | "approvals">,
  string
>;

export function askedWaits(facts: WaitFacts): readonly Wait[] {
  const { operations } = facts.row;
  const acts = newActs(facts);
  const gates = newGateActs(facts);
  const { observedOperation = 0 } = facts.row.status;
  const approvals = (operations.approvals ?? []).filter(({ number }) => number > observedOperation);
  const words = [
    ...specWord(facts),
    ...acts.map((act) => verbs[act]),
    ...new Set(gates.map(({ verb }) => `rollout ${verb}`)),
    ...new Set(newRejections(facts.row, facts.rolloutState).map((act) => `rollout ${act.do}`)),
    ...(approvals.length === 0 ? [] : ["rollout approve"]),
    ...judgementWord(facts),
  ];
  const since = [
    ...acts.flatMap((act) => operations[act]?.at ?? []),
    ...[...gates, ...approvals].map(({ at }) => at),
  ].sort()[0];
  const ofPlanner: readonly Wait[] =
    words.length === 0
      ? []
      : [
          {
            reason: "asked",
            blocker: "planner",
            message: `the planner has not started yet: ${words.join(", ")}`,
            ...defined({ since }),
            clear: [],
          },
        ];
  const ofSources = (facts.askedSources ?? []).map(
    (name): Wait => ({
      reason: "asked",
      blocker: `source/${name}`,
      message: `source/${name} has not been polled since that was requested`,
      clear: [],
    }),
  );
  return [...ofPlanner, ...ofSources];
}

/** A Source that was not polled since its spec changed, or since somebody asked; a suspended Source is not polled. */
export function isCheckAwaited({ operations, generation, status }: SourceRow): boolean {
  if (operations.suspended !== undefined) return false;
  const { number = 0 } = operations.reconcile ?? {};
  return number > (status.handledReconcile ?? 0) || status.observedGeneration !== generation;
}

function specWord({ row: { generation, status } }: WaitFacts): readonly string[] {
  return status.observedGeneration === generation ? [] : ["the spec"];
}

/**
 * Acts on stage runs that the planner has not seen, and retries and skips that it has not started although nothing is
 * suspended.
 */
function newGateActs({ row: { operations, status }, rolloutState }: WaitFacts): readonly GateAct[] {
  const { gates = [], suspended } = operations;
  const waiting = suspended === undefined ? newTargetActs(operations, rolloutState) : [];
  return gates.filter((act) => act.number > (status.observedOperation ?? 0) || waiting.some((one) => one === act));
}

/** Acts that the planner has not seen; and acts that it has not carried out, although nothing is suspended. */
function newActs({ row, rolloutState }: WaitFacts): readonly (keyof typeof verbs)[] {
  const { operations, status } = row;
  const seen = status.observedOperation ?? 0;
  const isSuspended = operations.suspended !== undefined;
  const isRetrying = rolloutState.jobs.some((job) => job.do === "retry");
  const isDone = (act: keyof typeof verbs, { number }: Act) => {
    if (number > seen) return false;
    if (isSuspended) return true;
    if (act === "reconcile") return rolloutState.handledReconcile === number && !isRetrying;
    if (act === "rollback") return rolloutState.handledRollback === number;
    return act !== "refresh" || rolloutState.handledRefresh === number;
  };
  return (Object.keys(verbs) as (keyof typeof verbs)[]).filter((act) => {
    const done = operations[act];
    return done !== undefined && !isDone(act, done);
  });
}

/**
 * A stage run that stands still, but would not by the present facts: its budget was raised, or its failed targets get
 * another turn.
 */
function judgementWord({ row, rolloutState, stageRuns }: WaitFacts): readonly string[] {
  const { suspended, deletion } = row.operations;
  if (suspended !== undefined) return [];
  const late = rolloutState.stages.flatMap((stage) => {
    const stageRun = stageRunOf(stage, stageRuns);
    if (stageRun === undefined || !isStalled(stageRun)) return [];
    const facts = stageRunFacts({ rolloutState, row, rollouts: new Map() }, stageRun);
    // Plans are not read here. The newest rollout of an owner that is being deleted is that of its deletion.
    const isDeletion = deletion !== undefined && stageRun.rollout === rolloutState.last;
    const { phase } = advance(stageRun, { ...facts, deletion: isDeletion });
    return phase === stageRun.phase ? [] : [stageRun];
  });
  return late.map(({ stage }) => `the verdict on stage ${stage}`);
}
