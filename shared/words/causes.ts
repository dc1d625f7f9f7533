/** Sorts the clusters of a rollout, worst first, and groups them by the cause that they share. */
import { isDone, type TargetItem, type ZoneProblem } from "#shared/fleet/api/objects.ts";
import { stateRank } from "#shared/words/state-words.ts";

export interface Cause {
  /** The first word of the reason, and the rest of what is known. */
  readonly word: string;
  readonly detail: string;
  readonly targets: readonly TargetItem[];
}

/** Causes, the most common first. A zone that is down is one, whatever its clusters say. */
export function causesOf(targets: readonly TargetItem[]): readonly Cause[] {
  return [...Map.groupBy(targets, causeKey).values()]
    .sort((a, b) => b.length - a.length)
    .map((group) => ({ ...whyNot(group[0] as TargetItem), targets: group }));
}

/** The causes that are a whole zone, and the targets that have others. */
export function zonesAmong(targets: readonly TargetItem[]): {
  readonly zones: readonly Cause[];
  readonly others: readonly TargetItem[];
} {
  const [others, ofZones] = [targets.filter(({ zone }) => zone === undefined), targets.filter(({ zone }) => zone)];
  return { zones: causesOf(ofZones), others };
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
  if (target.zone !== undefined) return `${target.zone.problem}|${target.zone.name}`;
  const text = target.reason.replaceAll(/-[a-z0-9]{6,10}-[a-z0-9]{5}\b/g, "-POD").replaceAll(target.cluster, "CLUSTER");
  return `${target.state}|${text.replaceAll(/\d+/g, "#")}`;
}

function whyNot(target: TargetItem): Pick<Cause, "word" | "detail"> {
  if (target.zone !== undefined) return { word: target.zone.problem, detail: zoneText(target.zone) };
  const text = target.reason;
  const [, word = target.state, detail = text] = /^([A-Z][A-Za-z]*)(?:: |$)(.*)$/s.exec(text) ?? [];
  return { word, detail };
}

function zoneText({ name, problem, since }: ZoneProblem): string {
  const remedy = `its clusters catch up when it is repaired: \`starling get zones ${name}\`, and "Zone down" in the runbook`;
  if (problem === "ZoneSilent") return `${silentZoneText(name, since)}; ${remedy}`;
  const what = since === undefined ? "no worker has ever run" : `no worker has run since ${since}`;
  return `zone ${name}: ${what}; ${remedy}`;
}

export function silentZoneText(zone: string, since: string | undefined): string {
  return `no cluster of zone ${zone} answers since ${since}`;
}
