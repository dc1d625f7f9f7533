import { doneText } from "#cli/format/done-text.ts";
import { foldLines } from "#cli/format/fold-lines.ts";
import { countOf } from "#cli/format/get-table.ts";
import { formatTable } from "#cli/format/table.ts";
import { describeCommand, manyClusters, reasonsText, type TargetLines, targetsText } from "#cli/format/target-lines.ts";
import { plainLine } from "#shared/base/plain-text.ts";
import type { RolloutObject, RolloutStage } from "#shared/fleet/api/objects.ts";
import { formatAge, formatTime } from "#shared/words/age.ts";
import { isQuiet, worstTargetsFirst } from "#shared/words/causes.ts";
import { reasonText } from "#shared/words/object-state.ts";
import { revisionText } from "#shared/words/revision-text.ts";
import { phaseWords, rolloutArgument } from "#shared/words/rollout-words.ts";
import { triggerText } from "#shared/words/trigger-text.ts";

export interface RolloutView extends TargetLines {
  readonly rollout: RolloutObject;
}

/** One rollout: the head, its stages, then its clusters, the worst first, or the reasons if there are many clusters. */
export function formatRolloutStatus(view: RolloutView): string {
  const { rollout, lines } = view;
  const { owner, number } = rollout.spec;
  const many = rollout.status.size > manyClusters && lines === "some";
  const command = `starling rollout status ${rolloutArgument(owner)} --number ${number} --state failed --all`;
  const clusters = many ? reasonsText(view, { size: rollout.status.size, command }) : targetsText(view);
  const body = `${clusters}${lines === "some" ? nextText(view, many) : ""}`;
  const parts = [headText(view), stagesText(view), body];
  return foldLines(parts.filter((part) => part !== "").join("\n"), view.columns);
}

/** `08:31:02Z shop-12 Rolling: canary 1/1, rest 3/11, 2 changing, 0 failed`, for output that is not a terminal. */
export function formatProgress(rollout: RolloutObject, now: Date): string {
  const stages = rollout.status.stages.map((stage) => {
    const done = stage.counts.Succeeded + stage.counts.Unchanged;
    return `${stage.name} ${done}/${stage.size}`;
  });
  const changing = countOf(rollout, "Assigned");
  const failed = countOf(rollout, "Failed");
  const time = formatTime(now.toISOString(), now);
  return `${time} ${rollout.metadata.name} ${rollout.status.phase}: ${stages.join(", ")}, ${changing} changing, ${failed} failed`;
}

function headText({ rollout, now }: RolloutView): string {
  const { spec, status, metadata } = rollout;
  const from = spec.fromRevision === undefined ? "" : `   from ${revisionText(spec.fromRevision)}`;
  const skipped = spec.skipped === undefined ? "" : `   ${spec.skipped.count} skipped before it`;
  const first = `${metadata.name}   ${revisionText(spec.revision)}${from}   trigger: ${triggerText(spec)}   plan ${shortHash(spec.plan.planHash)}${skipped}`;
  const started = metadata.creationTimestamp ?? "";
  const ended = status.endedAt === undefined ? "" : `, ended ${formatTime(status.endedAt, now)}`;
  const phase = reasonText(status.phase, status.message === "" ? status.reason : status.message);
  return `${plainLine(first)}\nstarted ${formatTime(started, now)}, ${formatAge(started, now)} ago${ended}\n${plainLine(phase)}\n`;
}

function stagesText({ rollout, columns: width, now }: RolloutView): string {
  const { status } = rollout;
  const size = status.size > manyClusters ? "many" : "few";
  const rows = status.stages.map((stage, index) => [
    `${index + 1} ${stage.name}`,
    stage.size.toLocaleString("en"),
    doneText(stage, size),
    String(stage.counts.Failed),
    String(stage.counts.Unreachable),
    String(stage.counts.Assigned),
    stageState(stage, now),
  ]);
  const total = [
    "total",
    status.size.toLocaleString("en"),
    countOf(rollout, "Succeeded", "Unchanged").toLocaleString("en"),
    String(countOf(rollout, "Failed")),
    String(countOf(rollout, "Unreachable")),
    String(countOf(rollout, "Assigned")),
    otherCounts(rollout),
  ];
  const columns = ["STAGE", "CLUSTERS", "DONE", "FAILED", "UNREACH", "CHANGING", "STATE"];
  const style = { headers: "show", indent: "  ", columns: width } as const;
  return formatTable({ columns, rows: rows.length > 1 ? [...rows, total] : rows }, style);
}

function stageState({ phase, size, endedAt, supersededBy }: RolloutStage, now: Date): string {
  if (size === 0 && (phase === "Passed" || phase === "Waiting")) return "empty";
  if (phase === "Passed") return endedAt === undefined ? "passed" : `passed ${formatTime(endedAt, now)}`;
  if (phase === "Superseded") return supersededBy === undefined ? "superseded" : `superseded by ${supersededBy}`;
  return phaseWords[phase];
}

function otherCounts(rollout: RolloutObject): string {
  return (["Waiting", "Rendering", "Unchanged", "Skipped", "Superseded"] as const)
    .map((word) => ({ word, count: countOf(rollout, word) }))
    .filter(({ count }) => count > 0)
    .map(({ word, count }) => `${word.toLowerCase()} ${count.toLocaleString("en")}`)
    .join(" · ");
}

function nextText({ rollout, targets }: RolloutView, many: boolean): string {
  const { phase } = rollout.status;
  const worst = worstTargetsFirst(targets).find((target) => many || !isQuiet(target));
  if ((phase !== "Halted" && phase !== "Stalled") || worst === undefined) return "";
  const { owner } = rollout.spec;
  const inspect = plainLine(describeCommand(owner, worst));
  return `  next: ${inspect}\n        push a repair, or see what clears it: starling rollout status ${rolloutArgument(owner)}\n`;
}

function shortHash(hash: string): string {
  return hash.replace(/^sha256:/, "").slice(0, 7);
}
