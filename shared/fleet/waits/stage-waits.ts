/** What a stage waits for: its leg stands still, or something of it is not ready, or an earlier stage has what comes next. */
import { defined } from "#shared/base/defined.ts";
import { barredIn, legOf, offeredTo } from "#shared/fleet/rollout/feed.ts";
import { changedSize, isLeft, isStalled, mustVerify, verdictOf } from "#shared/fleet/rollout/legs.ts";
import { relationOf } from "#shared/fleet/rollout/plan.ts";
import { barredText } from "#shared/fleet/rollout/subject-status.ts";
import type { LegRow, UnitRow, UnitStage } from "#shared/fleet/rows/rollout-rows.ts";
import { namesText, type Wait, type WaitFacts } from "#shared/fleet/waits/wait.ts";

const [reconcile, orphan] = [{ verb: "reconcile" }, { verb: "orphan" }] as const;

export function stageWaits(facts: WaitFacts, stage: UnitStage, index: number): readonly Wait[] {
  const leg = legOf(stage, facts.legs);
  if (leg === undefined) return idleWait(facts, stage, index);
  if (isStalled(leg)) return [stalledWait(facts, leg)];
  const { content } = leg;
  const waits: Wait[] = [];
  const about = { stage: stage.name, content };
  if (leg.rendering.length > 0) {
    const message = `${leg.rendering.length} wait for their renderings`;
    waits.push({ on: "rendering", ...about, clusters: { count: leg.rendering.length, names: [] }, message, clear: [] });
  }
  if (leg.aside.length > 0) {
    const message = `${leg.aside.length} wait until what was begun there before is settled`;
    waits.push({ on: "worker", ...about, clusters: { count: leg.aside.length, names: [] }, message, clear: [] });
  }
  const before = facts.unit.stages[index - 1];
  if (stage.ahead === true && before !== undefined) {
    const message = `${content} waits until ${before.name}, which was put before it, has passed that`;
    waits.push({ on: "stage", ...about, blocker: before.name, message, since: leg.startedAt, clear: [] });
  }
  const next = index === 0 ? facts.wanted : newerFor(facts.unit, index, content);
  if (next === undefined) return waits;
  const message = `${next} waits until ${content} has passed ${stage.name}`;
  const number = typeof next === "number" ? next : undefined;
  return [
    ...waits,
    {
      on: "stage",
      stage: stage.name,
      ...defined({ content: number }),
      blocker: stage.name,
      message,
      since: leg.startedAt,
      clear: [],
    },
  ];
}

/** The content that the stage before is on, where this one has nothing as new. */
function newerFor(unit: UnitRow, index: number, has: number): number | undefined {
  const offered = offeredTo(unit, index);
  return offered > has ? offered : undefined;
}

/** A stage through which nothing goes waits for the nearest one before it that has something newer. */
function idleWait({ unit, legs, wanted, row }: WaitFacts, stage: UnitStage, index: number): readonly Wait[] {
  const about = { on: "stage", stage: stage.name, clear: [] } as const;
  const barred = barredIn(unit);
  if (barred?.stage === stage.name && row.operations.deletion === undefined) {
    const { content } = barred;
    const message = barredText(unit) ?? "";
    return [{ on: "evidence", stage: stage.name, content, message, clear: [{ verb: "restart" }] }];
  }
  if (index === 0) {
    if (wanted === undefined || relationOf(row).rollout.supersede !== "finish") return [];
    const busy = unit.stages.find((one) => legOf(one, legs) !== undefined);
    const leg = busy === undefined ? undefined : legOf(busy, legs);
    if (busy === undefined || leg === undefined) return [];
    const message = `${wanted} waits until ${leg.content} is through: ${progressText(leg)} in ${busy.name}`;
    return [{ ...about, blocker: busy.name, message, since: leg.startedAt }];
  }
  const { on = 0 } = stage;
  const ahead = unit.stages.slice(0, index).findLast((one) => (legOf(one, legs)?.content ?? 0) > on);
  const leg = ahead === undefined ? undefined : legOf(ahead, legs);
  if (ahead === undefined || leg === undefined) return [];
  const how = isStalled(leg) ? "stands still" : "goes on";
  const message = `waits for ${ahead.name}: ${leg.content} ${how} there, ${progressText(leg)}`;
  return [{ ...about, content: leg.content, blocker: ahead.name, message, since: leg.startedAt }];
}

export function progressText({ counts, size }: LegRow): string {
  return `${counts.Succeeded + counts.Unchanged} of ${size} done`;
}

/**
 * A newer content gets past each of them; what else does is said, and nothing that would leave the stage standing still, though
 * for another reason. A `reconcile` gives another turn to what failed: who does not answer has it by answering.
 */
function stalledWait({ row }: WaitFacts, leg: LegRow): Wait {
  const { stage, content, message, transitions, startedAt } = leg;
  const about = { stage, content, since: transitions.at(-1)?.at ?? startedAt };
  const again = leg.counts.Failed > 0 ? [reconcile] : [];
  const away = { count: leg.counts.Unreachable, names: leg.away };
  const { rollout } = relationOf(row);
  const judged = { mustVerify: mustVerify(rollout, stage) };
  const paced = (field: "maxFailures" | "maxUnreachable"): Wait["clear"] =>
    isStalled(verdictOf(leg, { ...rollout, [field]: "100%" }, judged)) ? [] : [{ verb: "pace", field }];
  const restart: Wait["clear"] = isStalled(verdictOf(sealedAnew(leg), rollout, judged)) ? [] : [{ verb: "restart" }];
  if (leg.phase === "TooManyUnreachable") {
    const clear = row.operations.deletion === undefined ? [...paced("maxUnreachable"), ...restart] : withoutThem(leg);
    return { on: "unreachable", ...about, clusters: away, message: `${message}${namesText(away)}`, clear };
  }
  const clusters = failedOf(leg);
  if (row.operations.deletion !== undefined)
    return { on: "budget", ...about, clusters, message, clear: [...again, orphan] };
  if (leg.phase === "Halted") {
    const clear = [...again, ...restart, ...paced("maxFailures")];
    return { on: "budget", ...about, clusters, message, clear };
  }
  if (isLeft(leg, judged)) return { on: "evidence", ...about, message, clear: restart };
  const unverified = { count: changedSize(leg), names: [...leg.away, ...clusters.names] };
  const text = `${message}${namesText(unverified)}`;
  return { on: "evidence", ...about, clusters: unverified, message: text, clear: [...again, ...restart] };
}

/** Everybody has another turn, and what cannot be rendered fails at once. */
function sealedAnew(leg: LegRow): LegRow {
  const { unrendered, counts } = leg;
  const Waiting = changedSize(leg) - unrendered.length;
  const none = { Rendering: 0, Assigned: 0, Succeeded: 0, Unreachable: 0 };
  return { ...leg, preexistingFailures: 0, counts: { ...counts, ...none, Failed: unrendered.length, Waiting } };
}

/** A deletion goes on when they answer; till then nothing can be asked of it but that it does without. */
function withoutThem({ away: [cluster] }: LegRow): Wait["clear"] {
  return [...(cluster === undefined ? [] : [{ verb: "unregister", cluster } as const]), orphan];
}

function failedOf({ counts, failures }: LegRow): NonNullable<Wait["clusters"]> {
  return { count: counts.Failed, names: failures.map(({ cluster }) => cluster) };
}
