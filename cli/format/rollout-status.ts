import { formatAge, formatTime } from "#cli/format/age.ts";
import { countOf } from "#cli/format/get-table.ts";
import { reasonText } from "#cli/format/object-state.ts";
import { revisionText } from "#cli/format/revision-text.ts";
import { stateRank } from "#cli/format/state-words.ts";
import { formatTable, shorten } from "#cli/format/table.ts";
import { isDone, type RolloutObject, type TargetItem } from "#shared/fleet/api/objects.ts";
import { resolveCount } from "#shared/fleet/kinds/quantities.ts";

/** From so many clusters on, counts and reasons stand for lines. */
export const manyClusters = 40;
const barCells = 20;
const reasonWidth = 80;
const groupsShown = 8;
const worstShown = 3;
const namesPerLine = 8;

export interface RolloutView {
  readonly rollout: RolloutObject;
  /** All targets of a small rollout; those that are in trouble of a large one. */
  readonly targets: readonly TargetItem[];
  /** One line for each of `targets`, whatever their number. */
  readonly lines: "all" | "some";
  readonly now: Date;
}

/** What `rollout status` says: the head, the stages, then clusters worst first, or reasons when they are many. */
export function formatRolloutStatus(view: RolloutView): string {
  const many = view.rollout.status.size > manyClusters && view.lines === "some";
  return [headText(view), stagesText(view), many ? reasonsText(view) : targetsText(view)]
    .filter((part) => part !== "")
    .join("\n");
}

/** `08:31:02Z canary 1/1, rest 3/11, 2 changing, 0 failed`: one line for each change, where nothing can be redrawn. */
export function formatProgress(rollout: RolloutObject, now: Date): string {
  const stages = rollout.status.stages.map((stage) => {
    const done = stage.counts.Succeeded + stage.counts.Unchanged;
    return `${stage.name} ${done}/${stage.size}`;
  });
  const changing = countOf(rollout, "Rendering", "Assigned", "Applying", "Verifying");
  const failed = countOf(rollout, "Failed");
  const time = formatTime(now.toISOString(), now);
  return `${time} ${rollout.metadata.name} ${rollout.status.phase}: ${stages.join(", ")}, ${changing} changing, ${failed} failed`;
}

function headText({ rollout, now }: RolloutView): string {
  const { spec, status, metadata } = rollout;
  const from = spec.fromRevision === undefined ? "" : `   from ${revisionText(spec.fromRevision)}`;
  const first = `${metadata.name}   ${revisionText(spec.revision)}${from}   trigger: ${spec.trigger}   plan ${shortHash(spec.plan.contentHash)}`;
  const { maxConcurrent, maxFailures, maxUnreachable } = spec.strategy;
  const failed = countOf(rollout, "Failed");
  const unreachable = countOf(rollout, "Unreachable");
  const started = metadata.creationTimestamp ?? "";
  const ended = status.endedAt === undefined ? "" : `, ended ${formatTime(status.endedAt, now)}`;
  const bounds = [
    `max ${Math.max(1, resolveCount(maxConcurrent, status.selected))} at once`,
    `failures ${failed}/${resolveCount(maxFailures, status.selected)}`,
    `unreachable ${unreachable}/${resolveCount(maxUnreachable, status.selected)}`,
  ].join(", ");
  const phase = reasonText(status.phase, status.message === "" ? status.reason : status.message);
  return `${first}\nstarted ${formatTime(started, now)}, ${formatAge(started, now)} ago${ended} · ${bounds}\n${phase}\n`;
}

function stagesText({ rollout, now }: RolloutView): string {
  const { status } = rollout;
  const large = status.size > manyClusters;
  const rows = status.stages.map((stage, index) => {
    const done = stage.counts.Succeeded + stage.counts.Unchanged;
    const changing = stage.counts.Rendering + stage.counts.Assigned + stage.counts.Applying + stage.counts.Verifying;
    return [
      `${index + 1} ${stage.name}`,
      stage.size.toLocaleString("en"),
      large ? `${done.toLocaleString("en")} ${bar(done, stage.size)}` : String(done),
      String(stage.counts.Failed),
      String(stage.counts.Unreachable),
      String(changing),
      stageState({ rollout, index, now }),
    ];
  });
  const total = [
    "total",
    status.size.toLocaleString("en"),
    countOf(rollout, "Succeeded", "Unchanged").toLocaleString("en"),
    String(countOf(rollout, "Failed")),
    String(countOf(rollout, "Unreachable")),
    String(countOf(rollout, "Rendering", "Assigned", "Applying", "Verifying")),
    otherCounts(rollout),
  ];
  const columns = ["STAGE", "CLUSTERS", "DONE", "FAILED", "UNREACH", "CHANGING", "STATE"];
  return formatTable({ columns, rows: rows.length > 1 ? [...rows, total] : rows }, { headers: "show", indent: "  " });
}

function stageState({ rollout, index, now }: { rollout: RolloutObject; index: number; now: Date }): string {
  const { status } = rollout;
  const stage = status.stages[index];
  if (stage === undefined) return "";
  if (stage.size === 0) return "empty";
  if (stage.endedAt !== undefined) return `passed ${formatTime(stage.endedAt, now)}`;
  if (status.phase === "Planning" || status.phase === "Sealed") return status.phase.toLowerCase();
  if (index > status.stage) return "waiting";
  if (status.phase === "Running") return index === status.stage ? "rolling" : "passed";
  return status.phase.toLowerCase();
}

function otherCounts(rollout: RolloutObject): string {
  const parts = (["Waiting", "Unchanged", "Skipped", "Superseded"] as const).flatMap((state) => {
    const count = countOf(rollout, state);
    return count === 0 ? [] : [`${state.toLowerCase()} ${count.toLocaleString("en")}`];
  });
  return parts.join(" · ");
}

function bar(done: number, size: number): string {
  const share = size === 0 ? 1 : done / size;
  const filled = Math.floor(share * barCells);
  return `${"█".repeat(filled)}${"░".repeat(barCells - filled)} ${String(Math.floor(share * 100)).padStart(3)}%`;
}

function targetsText({ targets, lines, now, rollout }: RolloutView): string {
  const sorted = [...targets].sort((a, b) => stateRank(a.state) - stateRank(b.state) || a.order - b.order);
  const collapse = lines === "some";
  const single = sorted.filter((target) => !(collapse && isQuiet(target)));
  const rows = single.map((target) => [
    target.cluster,
    target.stage,
    target.state,
    formatAge(target.endedAt ?? target.assignedAt, now),
    revisionText(target.revision),
    `${shorten(target.reason, reasonWidth)}${target.preexisting === true ? " (not ready before)" : ""}`,
  ]);
  let text = "";
  if (rows.length > 0) {
    const columns = ["CLUSTER", "STAGE", "STATE", "FOR", "REVISION", "REASON"];
    text += formatTable({ columns, rows }, { headers: "show", indent: "  " });
  }
  if (!collapse) return text;
  const quiet = Map.groupBy(sorted.filter(isQuiet), (target) => `${target.state}, ${target.stage}`);
  for (const [state, group] of quiet) {
    const names = group.slice(0, namesPerLine).map((target) => target.cluster);
    const rest = group.length > namesPerLine ? ` +${group.length - namesPerLine}` : "";
    text += `  ${state} (${group.length}): ${names.join(" ")}${rest}\n`;
  }
  return `${text}${nextText(rollout, single[0])}`;
}

/** Targets about which there is nothing to say one by one. */
function isQuiet(target: TargetItem): boolean {
  return (
    isDone(target.state) || ((target.state === "Waiting" || target.state === "Superseded") && target.reason === "")
  );
}

function reasonsText({ targets, rollout }: RolloutView): string {
  if (targets.length === 0) return "";
  const groups = [...Map.groupBy(targets, causeOf).values()].sort((a, b) => b.length - a.length);
  const rows = groups.slice(0, groupsShown).map((group) => {
    const { word, detail } = whyNot(group[0] as TargetItem);
    return [word, shorten(detail, reasonWidth), group.length.toLocaleString("en")];
  });
  let others = 0;
  for (const group of groups.slice(groupsShown)) others += group.length;
  if (others > 0) rows.push(["other", "(--state failed --all)", others.toLocaleString("en")]);
  const title = `WHY NOT (${targets.length.toLocaleString("en")} of ${rollout.status.size.toLocaleString("en")})`;
  const table = formatTable({ columns: [title, "", "CLUSTERS"], rows }, { headers: "show", indent: "  " });
  const worst = [...targets].sort((a, b) => stateRank(a.state) - stateRank(b.state) || a.order - b.order);
  const names = worst.slice(0, worstShown).map((target) => target.cluster);
  const more = worst.length > worstShown ? ` … +${worst.length - worstShown}` : "";
  const command = `starling rollout status ${subjectText(rollout)} --state failed --all`;
  return `${table}  worst: ${names.join(" ")}${more}     ${command}\n${nextText(rollout, worst[0])}`;
}

/** One cause: the same words, whatever the numbers, the cluster and the Pod in them. */
function causeOf(target: TargetItem): string {
  const text = target.reason.replaceAll(/-[a-z0-9]{6,10}-[a-z0-9]{5}\b/g, "-POD").replaceAll(target.cluster, "CLUSTER");
  return `${target.state}|${text.replaceAll(/\d+/g, "#")}`;
}

/** The reason's first word, and the rest of what is known. */
function whyNot(target: TargetItem): { readonly word: string; readonly detail: string } {
  const text = target.reason;
  const [, word = target.state, detail = text] = /^([A-Z][A-Za-z]*)(?:: |$)(.*)$/s.exec(text) ?? [];
  return { word, detail };
}

function nextText(rollout: RolloutObject, worst: TargetItem | undefined): string {
  if (rollout.status.phase !== "Halted" || worst === undefined) return "";
  const { subject } = rollout.spec;
  const look = `starling describe ${troubledText(subject, worst)} -n ${subject.namespace}`;
  return `  next: ${look}\n        mend the source and push: the next revision starts a new rollout\n`;
}

/** What shows the reason: nothing is on a cluster to which nothing was assigned. */
function troubledText(subject: RolloutObject["spec"]["subject"], { sync, cluster }: TargetItem): string {
  if (subject.kind === "Sync") return `sync/${subject.name}`;
  return sync === undefined ? `syncgroup/${subject.name}` : `sync/${sync} --cluster ${cluster}`;
}

function subjectText({ spec: { subject } }: RolloutObject): string {
  return `${subject.kind === "Sync" ? "sync/" : ""}${subject.name} -n ${subject.namespace}`;
}

function shortHash(hash: string): string {
  return hash.replace(/^sha256:/, "").slice(0, 7);
}
