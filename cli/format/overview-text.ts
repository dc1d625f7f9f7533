/** The stages of a group: the current rollout of each, the rollouts in progress, and what they wait for. */

import { doneText } from "#cli/format/done-text.ts";
import { foldLines } from "#cli/format/fold-lines.ts";
import { formatTable } from "#cli/format/table.ts";
import { describeCommand, manyClusters, reasonsText, type TargetLines, targetsText } from "#cli/format/target-lines.ts";
import { plainLine } from "#shared/base/plain-text.ts";
import type { OverviewStage, OverviewStageRun, RolloutOverview } from "#shared/fleet/api/rollout-overview.ts";
import { isEndedPhase, isStalledPhase } from "#shared/fleet/rows/rollout-rows.ts";
import { formatAge, formatTime } from "#shared/words/age.ts";
import { isQuiet, worstTargetsFirst } from "#shared/words/causes.ts";
import { revisionText } from "#shared/words/revision-text.ts";
import {
  type BudgetState,
  budgetOf,
  clearCommand,
  clearEffect,
  clearWord,
  phaseWords,
  rolloutArgument,
  waitText,
} from "#shared/words/rollout-words.ts";
import { timeLeft } from "#shared/words/time-left.ts";

export interface OverviewView extends TargetLines {
  readonly overview: RolloutOverview;
}

/** The head, the stages, the rollouts in progress, the waits, then the clusters, or the reasons if there are many clusters. */
export function formatOverview(view: OverviewView): string {
  const { overview, lines } = view;
  const size = memberCount(overview);
  const many = size > manyClusters && lines === "some";
  const command = `starling rollout status ${rolloutArgument(overview.spec.owner)} --state failed --all`;
  const clusters = many ? reasonsText(view, { size, command }) : targetsText(view);
  const body = `${clusters}${lines === "some" ? nextText(view, many) : ""}`;
  const parts = [headText(view), stagesText(view), contentsText(view), waitsText(view), body];
  return foldLines(parts.filter((part) => part !== "").join("\n"), view.columns);
}

/** `08:31:02Z shop Rolling: canary has rollout 119, early 2/4 done with rollout 118, 2 changing, 0 failed`. */
export function formatOverviewProgress(overview: RolloutOverview, now: Date): string {
  const { stages, slots, state } = overview.status;
  const words = stages.map(({ name, current, updatingTo }) => {
    if (updatingTo === undefined)
      return current === undefined ? `${name} has no rollout` : `${name} has rollout ${current}`;
    const done = updatingTo.counts.Succeeded + updatingTo.counts.Unchanged;
    return `${name} ${done}/${updatingTo.size} done with rollout ${updatingTo.rollout}`;
  });
  const failed = stages.reduce((sum, { updatingTo }) => sum + (updatingTo?.counts.Failed ?? 0), 0);
  const time = formatTime(now.toISOString(), now);
  return `${time} ${overview.metadata.name} ${state ?? "Pending"}: ${words.join(", ")}, ${slots.used} changing, ${failed} failed`;
}

export function memberCount({ status }: RolloutOverview): number {
  return status.stages.reduce((sum, { members }) => sum + members, 0);
}

/** The stage run that a stage shows: the one in progress, or the one that passed last. */
export function shownStageRun({ updatingTo, passed }: OverviewStage): OverviewStageRun | undefined {
  return updatingTo ?? passed;
}

export function isStanding({ updatingTo }: OverviewStage): boolean {
  return isStalledPhase(updatingTo?.phase);
}

function headText({ overview, now }: OverviewView): string {
  const { metadata, spec, status } = overview;
  const { newest, rollouts, stages, slots, catchUps, desired, state } = status;
  const [first] = rollouts;
  const underWay = new Set(stages.flatMap(({ current, updatingTo }) => updatingTo?.rollout ?? current ?? [])).size;
  const rollout =
    first === undefined
      ? "no rollout yet"
      : `newest rollout ${newest}: ${revisionText(first.revision)} (${first.phase})`;
  const several = underWay > 1 ? `   ${underWay} rollouts in its stages` : "";
  const next = desired === undefined ? "" : `   desired: ${revisionText(desired)}`;
  const line = `${metadata.name}   ${state ?? "Pending"}   ${rollout}${several}${next}`;
  const { maxConcurrent, maxFailures, maxUnreachable } = spec.strategy;
  const { waiting, changing, failed, away: unreachable = 0 } = catchUps;
  const came = Object.entries({ waiting, changing, failed, unreachable })
    .filter(([, count]) => count > 0)
    .map(([word, count]) => `${count.toLocaleString("en")} ${word}`);
  const left = timeLeft(overview, now);
  const parts = [
    `${slots.used} of ${slots.bound} changing (maxConcurrent ${maxConcurrent})`,
    `per stage: maxFailures ${maxFailures}, maxUnreachable ${maxUnreachable}`,
    ...(came.length === 0 ? [] : [`catch-ups: ${came.join(", ")}`]),
    ...(left === undefined ? [] : [left]),
  ];
  return `${plainLine(line)}\n${parts.join(" · ")}\n`;
}

function stagesText({ overview, columns: width, now }: OverviewView): string {
  const { stages } = overview.status;
  const size = memberCount(overview) > manyClusters ? "many" : "few";
  const rows = stages.map((stage, index) => {
    const stageRun = shownStageRun(stage);
    return [
      `${index + 1} ${stage.name}`,
      stage.members.toLocaleString("en"),
      String(stage.current ?? "-"),
      String(stage.updatingTo?.rollout ?? "-"),
      stageRun === undefined ? "-" : doneText(stageRun, size),
      budgetText(stageRun, "Failed"),
      budgetText(stageRun, "Unreachable"),
      String(stage.changing),
      stateText(stage, now),
    ];
  });
  const columns = [
    "STAGE",
    "CLUSTERS",
    "CURRENT",
    "UPDATING TO",
    "DONE",
    "FAILED/MAX",
    "UNREACH/MAX",
    "CHANGING",
    "STATE",
  ];
  return formatTable({ columns, rows }, { headers: "show", indent: "  ", columns: width });
}

/** `2/5 (+1 before)`: failures, the allowed number, and clusters that had failed before the rollout. */
function budgetText(stageRun: OverviewStageRun | undefined, state: BudgetState): string {
  if (stageRun === undefined) return "-";
  const { spent, allowed } = budgetOf(stageRun, state);
  if (allowed === undefined) return String(spent);
  const { preexistingFailures } = stageRun;
  const before = state === "Unreachable" || preexistingFailures === 0 ? "" : ` (+${preexistingFailures} before)`;
  return `${spent}/${allowed}${before}`;
}

function stateText(stage: OverviewStage, now: Date): string {
  const { updatingTo, passed, members, current } = stage;
  if (updatingTo !== undefined) {
    const word = isEndedPhase(updatingTo.phase) ? "" : phaseWords[updatingTo.phase];
    return `${word} for ${formatAge(updatingTo.since, now)}`;
  }
  if (members === 0) return "empty";
  if (current === undefined) return "waiting";
  return passed?.endedAt === undefined ? "passed" : `passed ${formatTime(passed.endedAt, now)}`;
}

/** The rollouts, if there are several: the revision and the stages of each. */
function contentsText({ overview, columns: width, now }: OverviewView): string {
  const { rollouts, stages } = overview.status;
  if (rollouts.length < 2) return "";
  const rows = rollouts.map(({ number, revision, at, phase }) => {
    const current = stages.filter((stage) => stage.current === number).map(({ name }) => name);
    const through = stages.filter(({ updatingTo }) => updatingTo?.rollout === number);
    const stalled = through.filter(isStanding).map(({ name }) => name);
    const updating = through.filter((stage) => !isStanding(stage)).map(({ name }) => name);
    const where = [
      ...(updating.length === 0 ? [] : [`updating ${updating.join(", ")}`]),
      ...(stalled.length === 0 ? [] : [`stalled in ${stalled.join(", ")}`]),
      ...(current.length === 0 ? [] : [`current in ${current.join(", ")}`]),
    ];
    return [String(number), revisionText(revision), formatAge(at, now), phase, where.join("; ")];
  });
  const columns = ["ROLLOUT", "REVISION", "AGE", "PHASE", "WHERE"];
  return formatTable({ columns, rows }, { headers: "show", indent: "  ", columns: width, last: "whole" });
}

/** One line for each wait: the obstacle, its age, and the command that clears it. */
function waitsText({ overview, columns, now }: OverviewView): string {
  const { waits } = overview.status;
  if (waits.length === 0) return "";
  const rows = waits.map((wait) => [
    wait.stage ?? "-",
    wait.reason,
    formatAge(wait.since, now),
    wait.clear.map(clearWord).join(", ") || "-",
    waitText(wait, now),
  ]);
  return formatTable(
    { columns: ["STAGE", "WAIT", "SINCE", "CLEARED BY", "MESSAGE"], rows },
    { headers: "show", indent: "  ", columns, last: "whole" },
  );
}

/** The commands of so many waits with the same reason are shown; the table has a line for each wait. */
const waitsOfReason = 3;

/** The commands that clear each wait, after the command that shows the reason of the worst one. */
function nextText({ overview, targets }: OverviewView, many: boolean): string {
  const { owner } = overview.spec;
  const { waits, stages } = overview.status;
  const worst = worstTargetsFirst(targets).find((target) => many || !isQuiet(target));
  const inspect = stages.some(isStanding) && worst !== undefined ? [describeCommand(owner, worst)] : [];
  const shown = [...Map.groupBy(waits, ({ reason }) => reason).values()].flatMap((same) =>
    same.slice(0, waitsOfReason),
  );
  const clearing = shown.filter(({ clear, reason }) => clear.length > 0 && reason !== "slots");
  const repair =
    stages.some(isStanding) && !clearing.some(({ clear }) => clear.some(({ verb }) => verb === "orphan"))
      ? ["push a repair: the next rollout replaces a stalled one"]
      : [];
  const commands = clearing.flatMap((wait) =>
    wait.clear.map((one) => {
      const effect = clearEffect(one, wait);
      return `${clearCommand(one, owner)}${effect === undefined ? "" : `   (${effect})`}`;
    }),
  );
  const lines = [...inspect, ...repair, ...new Set(commands)];
  return lines.map((line, index) => `  ${index === 0 ? "next:" : "     "} ${plainLine(line)}\n`).join("");
}
