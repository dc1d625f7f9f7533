/** The waits of a stage: for the targets of its stage run, for a person, or for the stage before it. */
import { defined } from "#shared/base/defined.ts";
import { advance, isLeft, isPromotable, mustVerify } from "#shared/fleet/rollout/advance.ts";
import { alarmsAwaited, unreadText } from "#shared/fleet/rollout/alarms.ts";
import { approvalOf, expiresAt, outdatedText, validApprovals } from "#shared/fleet/rollout/approval.ts";
import { bakeClock, bakedAt, bakeOf, checkEnd, isEndedFromOutside, withoutGates } from "#shared/fleet/rollout/bake.ts";
import { freezeOfBake } from "#shared/fleet/rollout/bake-freezes.ts";
import { checkExpiresAt, checkOf, isCheckOpen } from "#shared/fleet/rollout/check-gate.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import { barredIn, newerBefore, nextFor } from "#shared/fleet/rollout/order.ts";
import { barredText } from "#shared/fleet/rollout/owner-status.ts";
import { rollbackPlan } from "#shared/fleet/rollout/rollback.ts";
import { holdInForce, mayStartUnder } from "#shared/fleet/rollout/rollout-hold.ts";
import { changedSize, isStalled, stageRunOf } from "#shared/fleet/rollout/stage-runs.ts";
import type { StageRecord, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import { holdWaits } from "#shared/fleet/waits/hold-waits.ts";
import { namesText, type Wait, type WaitFacts } from "#shared/fleet/waits/wait.ts";

const [reconcile, retry, orphan] = [{ verb: "reconcile" }, { verb: "retry" }, { verb: "orphan" }] as const;
/** Number of clusters that are skipped or unregistered one by one. */
const mostOneByOne = 2;

export function stageWaits(facts: WaitFacts, stage: StageRecord, index: number): readonly Wait[] {
  return [...runWaits(facts, stage, index), ...approvalAhead(facts, stage)];
}

function runWaits(facts: WaitFacts, stage: StageRecord, index: number): readonly Wait[] {
  const stageRun = stageRunOf(stage, facts.stageRuns);
  if (stageRun === undefined) return idleWait(facts, stage, index);
  // The waits of the group name it.
  if (stageRun.phase === "Rejected") return [];
  if (isStalled(stageRun)) return [stalledWait(facts, stageRun)];
  const { rollout } = stageRun;
  const about = { stage: stage.name, rollout, since: stageRun.startedAt };
  const waits: Wait[] = [...approvalWait(facts, stageRun), ...checkWait(stageRun), ...bakeWait(facts, stageRun)];
  waits.push(
    ...stageRun.holds.flatMap(({ clusters, ...hold }) =>
      holdWaits({ ...hold, clusters: clusters.length }, about, facts),
    ),
  );
  const before = facts.rolloutState.stages[index - 1];
  if (stage.ahead === true && before !== undefined) {
    const message = `rollout ${rollout} waits until stage ${before.name}, which was added before this one, has passed it`;
    waits.push({ reason: "stage", ...about, blocker: before.name, message, clear: [] });
  }
  const mayStart = mayStartUnder(holdInForce(facts.row, facts.now));
  const next = index === 0 ? facts.desired : nextFor(facts.rolloutState, index, mayStart);
  if (next === undefined) return waits;
  const message = `${rolloutText(next)} waits until rollout ${rollout} has passed stage ${stage.name}`;
  const number = typeof next === "number" ? next : undefined;
  return [
    ...waits,
    {
      reason: "stage",
      stage: stage.name,
      ...defined({ rollout: number }),
      blocker: stage.name,
      message,
      since: stageRun.startedAt,
      clear: [],
    },
  ];
}

/** A stage without a stage run waits for the nearest stage before it that has something newer. */
function idleWait(
  { rolloutState, stageRuns, desired, row }: WaitFacts,
  stage: StageRecord,
  index: number,
): readonly Wait[] {
  const about = { reason: "stage", stage: stage.name, clear: [] } as const;
  const barred = barredIn(rolloutState);
  if (barred?.stage === stage.name && row.operations.deletion === undefined) {
    const { rollout } = barred;
    const message = barredText(rolloutState) ?? "";
    return [{ reason: "evidence", stage: stage.name, rollout, message, clear: [{ verb: "refresh" }] }];
  }
  if (index === 0) {
    if (desired === undefined || relationOf(row).rollout.supersede !== "finish") return [];
    const busy = rolloutState.stages.find((one) => stageRunOf(one, stageRuns) !== undefined);
    const stageRun = busy === undefined ? undefined : stageRunOf(busy, stageRuns);
    if (busy === undefined || stageRun === undefined) return [];
    const message = `${rolloutText(desired)} waits until rollout ${stageRun.rollout} has ended: ${progressText(stageRun)} in stage ${busy.name}`;
    return [{ ...about, blocker: busy.name, message, since: stageRun.startedAt }];
  }
  const ahead = newerBefore(rolloutState, index);
  const stageRun = ahead === undefined ? undefined : stageRunOf(ahead, stageRuns);
  if (ahead === undefined || stageRun === undefined) return [];
  const how = isStalled(stageRun) ? "is stalled there" : "is in progress there";
  const message = `waits for stage ${ahead.name}: rollout ${stageRun.rollout} ${how}, ${progressText(stageRun)}`;
  return [{ ...about, rollout: stageRun.rollout, blocker: ahead.name, message, since: stageRun.startedAt }];
}

/** A rollout by its number, or a revision that is not a rollout yet. */
function rolloutText(next: number | string): string {
  return typeof next === "number" ? `rollout ${next}` : `revision ${next}`;
}

export function progressText({ counts, size }: StageRunRow): string {
  return `${counts.Succeeded + counts.Unchanged} of ${size} done`;
}

/**
 * The wait of a stage run that stands still. A newer rollout replaces it. Each command is named only if the stage run
 * would then go on, or end. A `retry` gives failed targets another turn; an unreachable target gets one by answering.
 */
function stalledWait({ row, rolloutState }: WaitFacts, stageRun: StageRunRow): Wait {
  const { stage, rollout, phase, message, transitions, startedAt } = stageRun;
  const about = { stage, rollout, since: transitions.at(-1)?.at ?? startedAt };
  const isDeletion = row.operations.deletion !== undefined;
  const away = { count: stageRun.counts.Unreachable, names: stageRun.away };
  const { rollout: settings } = relationOf(row);
  const judged = { pace: settings, mustVerify: mustVerify(settings, stage) };
  const paced = (field: "maxFailures" | "maxUnreachable"): Wait["clear"] =>
    isStalled(advance(stageRun, { ...judged, pace: { ...settings, [field]: "100%" } }))
      ? []
      : [{ verb: "pace", field }];
  const refresh: Wait["clear"] = isStalled(advance(newSnapshot(stageRun), judged)) ? [] : [{ verb: "refresh" }];
  const promote: Wait["clear"] = isPromotable(stageRun) ? [{ verb: "promote", stage, rollout }] : [];
  if (phase === "TooManyUnreachable") {
    const clear = isDeletion ? withoutThem(stageRun) : [...paced("maxUnreachable"), ...refresh, ...promote];
    return { reason: "unreachable", ...about, clusters: away, message: `${message}${namesText(away)}`, clear };
  }
  const clusters = failedOf(stageRun);
  if (isDeletion)
    return {
      reason: "budget",
      ...about,
      clusters,
      message,
      clear: [...(clusters.count > 0 ? [reconcile] : []), orphan],
    };
  const hasFailed = clusters.count > 0 || isEndedFromOutside(stageRun);
  const again: Wait["clear"] = hasFailed ? [...rollbackOf(rolloutState, rollout), retry] : [];
  if (phase === "GateFailed") {
    if (stageRun.expired === true) return { reason: "gate", ...about, message, clear: [{ verb: "refresh" }] };
    const clear = [...again, ...promote, { verb: "reject", rollout } as const, ...paced("maxFailures")];
    return { reason: "gate", ...about, ...(clusters.count > 0 ? { clusters } : {}), message, clear };
  }
  if (phase === "Halted") {
    const clear = [...again, ...skips(stageRun, judged), ...refresh, ...paced("maxFailures")];
    return { reason: "budget", ...about, clusters, message, clear };
  }
  const optional: Wait["clear"] = stageRun.size === 0 ? [{ verb: "optional", stage }] : [];
  if (isLeft(stageRun, judged))
    return { reason: "evidence", ...about, message, clear: [...refresh, ...promote, ...optional] };
  const unverified = { count: changedSize(stageRun), names: [...stageRun.away, ...clusters.names] };
  const text = `${message}${namesText(unverified)}`;
  return {
    reason: "evidence",
    ...about,
    clusters: unverified,
    message: text,
    clear: [...again, ...refresh, ...promote],
  };
}

/** A rollback, when it would end a stage run of this rollout. */
export function rollbackOf(rolloutState: WaitFacts["rolloutState"], rollout: number): Wait["clear"] {
  const answer = rollbackPlan(rolloutState, undefined);
  return answer.ok && answer.plan.rejects.includes(rollout) ? [{ verb: "rollback", to: answer.plan.to }] : [];
}

/** The first failed clusters, as few as are needed for the stage run to go on without them. */
function skips(stageRun: StageRunRow, judged: Parameters<typeof advance>[1]): Wait["clear"] {
  const { counts, failures, takenOut } = stageRun;
  const goesOnWithout = (some: number) => {
    const without = { ...counts, Failed: counts.Failed - some, Skipped: counts.Skipped + some };
    const out = { count: (takenOut?.count ?? 0) + some, first: [] };
    const left = { ...stageRun, counts: without, failures: failures.slice(some), takenOut: out };
    return !isStalled(advance(left, judged));
  };
  const named = failures.slice(0, mostOneByOne);
  const needed = named.findIndex((_failure, index) => goesOnWithout(index + 1)) + 1;
  return oneByOne("skip", named.slice(0, needed));
}

function oneByOne(verb: "skip" | "unregister", named: readonly { readonly cluster: string }[]): Wait["clear"] {
  const of = named.length > 1 ? { of: named.length } : {};
  return named.map(({ cluster }) => ({ verb, cluster, ...of }));
}

/** People have to approve the plan; the line names who may, and the plan's hash. */
function approvalWait({ row }: WaitFacts, stageRun: StageRunRow): readonly Wait[] {
  const terms = approvalOf(stageRun);
  const { phase, stage, rollout, planHash, startedAt } = stageRun;
  if (phase !== "Gated" || terms === undefined || planHash === undefined) return [];
  const { approvals = [] } = row.operations;
  const { length } = validApprovals(stageRun, approvals);
  const message = `rollout ${rollout} waits before stage ${stage}: ${length} of ${terms.count} approvals of plan ${planHash}, by ${terms.by.join(", ")}${outdatedText(stageRun, approvals)}`;
  const clear: Wait["clear"] = [{ verb: "approve", stage, plan: planHash, by: terms.by }];
  const until = expiresAt(stageRun);
  return [{ reason: "approval", stage, rollout, message, since: startedAt, ...defined({ until }), clear }];
}

/** A rollout is on its way to a stage that asks people: they may approve now what it will do there. */
function approvalAhead({ row, rolloutState }: WaitFacts, { name: stage, gated }: StageRecord): readonly Wait[] {
  const { before, after } = relationOf(row).rollout.stages.find((one) => one.name === stage) ?? {};
  const terms = before?.[0]?.approval;
  if (gated === undefined || terms === undefined) return [];
  const { rollout, planHash, parts: planParts, outdated } = gated;
  const run = { stage, planHash, gates: defined({ before, after }), ...defined({ planParts, outdated }) };
  const { approvals = [] } = row.operations;
  const { length } = validApprovals(run, approvals);
  if (length >= terms.count) return [];
  const message = `rollout ${rollout} will wait before stage ${stage}: ${length} of ${terms.count} approvals of plan ${planHash}, by ${terms.by.join(", ")}${outdatedText(run, approvals)}`;
  const clear: Wait["clear"] = [{ verb: "approve", stage, plan: planHash, by: terms.by }];
  const since = rolloutState.ledger.find(({ number }) => number === rollout)?.at;
  return [{ reason: "approval", stage, rollout, message, ...defined({ since }), clear }];
}

/** The principal of a check has to answer; the line names it, and the plan's hash. */
function checkWait(stageRun: StageRunRow): readonly Wait[] {
  const { stage, rollout, check, planHash = "" } = stageRun;
  const terms = checkOf(stageRun);
  if (terms === undefined || check === undefined || !isCheckOpen(stageRun)) return [];
  const message = `rollout ${rollout} is checked in stage ${stage}: ${terms.principal} has to answer about plan ${planHash}`;
  const clear: Wait["clear"] = [
    { verb: "approve", stage, plan: planHash, by: [terms.principal] },
    { verb: "promote", stage, rollout },
  ];
  const until = checkExpiresAt(stageRun);
  return [{ reason: "approval", stage, rollout, message, since: check.since, ...defined({ until }), clear }];
}

/** A bake ends by itself, or when a person ends it. */
function bakeWait({ row }: WaitFacts, stageRun: StageRunRow): Wait[] {
  const { phase, bake, stage, rollout } = stageRun;
  if (phase !== "Baking" || bake === undefined || isCheckOpen(stageRun)) return [];
  const { progressDeadline } = relationOf(row).rollout;
  const clock = bakeClock(row.operations, progressDeadline);
  const unread = unreadText(stageRun);
  const frozen = freezeOfBake(bake);
  const isChecked = bake.check !== undefined && bake.check.seen >= stageRun.size;
  const awaited = isChecked ? (alarmsAwaited(stageRun) ?? "") : "each cluster is checked once more";
  const message =
    bake.check === undefined
      ? `rollout ${rollout} bakes in stage ${stage} for ${bakeOf(stageRun)}${frozen === undefined ? "" : `; freeze ${frozen.name} stops its clock`}${unread === undefined ? "" : `; ${unread}; the bake does not end before it is read`}`
      : `rollout ${rollout} has baked in stage ${stage}: ${awaited}`;
  const end = bake.check === undefined ? bakedAt(stageRun, clock) : checkEnd(bake.check, clock);
  const until = isChecked || unread !== undefined ? undefined : end;
  return [
    {
      reason: "bake",
      stage,
      rollout,
      message,
      since: bake.from,
      ...defined({ until }),
      clear: [{ verb: "promote", stage, rollout }],
    },
  ];
}

/** The stage run after a `rollout refresh`: targets that could not be rendered have failed, and all others wait. */
function newSnapshot(stageRun: StageRunRow): StageRunRow {
  const { unrendered, counts } = stageRun;
  const Waiting = changedSize(stageRun) - (stageRun.takenOut?.count ?? 0) - unrendered.length;
  const none = { Rendering: 0, Assigned: 0, Succeeded: 0, Unreachable: 0 };
  const before = withoutGates(stageRun);
  return { ...before, preexistingFailures: 0, counts: { ...counts, ...none, Failed: unrendered.length, Waiting } };
}

/** A deletion continues when the clusters answer; until then the only remedy is to leave them out. */
function withoutThem({ away, counts }: StageRunRow): Wait["clear"] {
  const isFew = counts.Unreachable <= mostOneByOne && counts.Unreachable === away.length;
  const named = isFew ? away.map((cluster) => ({ cluster })) : [];
  return [...oneByOne("unregister", named), orphan];
}

function failedOf({ counts, failures }: StageRunRow): NonNullable<Wait["clusters"]> {
  return { count: counts.Failed, names: failures.map(({ cluster }) => cluster) };
}
