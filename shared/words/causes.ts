/** Sorts the clusters of a rollout, worst first, and groups them by the cause that they share. */
import { isDone, type TargetItem } from "#shared/fleet/api/objects.ts";
import { stateRank } from "#shared/words/state-words.ts";

export interface Cause {
  /** The first word of the reason, and the rest of what is known. */
  readonly word: string;
  readonly detail: string;
  readonly targets: readonly TargetItem[];
}

/** Causes, the most common first. */
export function causesOf(targets: readonly TargetItem[]): readonly Cause[] {
  return [...Map.groupBy(targets, causeKey).values()]
    .sort((a, b) => b.length - a.length)
    .map((group) => ({ ...whyNot(group[0] as TargetItem), targets: group }));
}

/** Sorted by state, then by stage, then by their order in the stage. */
export function worstTargetsFirst(targets: readonly TargetItem[]): readonly TargetItem[] {
  const stages = [...new Set(targets.map(({ stage }) => stage))];
  const place = ({ stage }: TargetItem) => stages.indexOf(stage);
  return targets.toSorted(
    (a, b) => stateRank(a.state) - stateRank(b.state) || place(a) - place(b) || a.order - b.order,
  );
}

/** Targets that need no line of their own. */
export function isQuiet(target: TargetItem): boolean {
  return (
    isDone(target.state) || ((target.state === "Waiting" || target.state === "Superseded") && target.reason === "")
  );
}

/** Two reasons are the same cause if only numbers, the cluster or the Pod differ in them. */
function causeKey(target: TargetItem): string {
  const text = target.reason.replaceAll(/-[a-z0-9]{6,10}-[a-z0-9]{5}\b/g, "-POD").replaceAll(target.cluster, "CLUSTER");
  return `${target.state}|${text.replaceAll(/\d+/g, "#")}`;
}

function whyNot(target: TargetItem): Pick<Cause, "word" | "detail"> {
  const text = target.reason;
  const [, word = target.state, detail = text] = /^([A-Z][A-Za-z]*)(?:: |$)(.*)$/s.exec(text) ?? [];
  return { word, detail };
}
