import { clustersText } from "#cli/format/clusters-text.ts";
import { counted } from "#shared/base/counted.ts";
import { stringifyJson } from "#shared/base/json.ts";
import { plainLine } from "#shared/base/plain-text.ts";
import type { StageAsks } from "#shared/fleet/forecast/asked-plans.ts";
import type { ClusterDifference, Forecast, TargetChange } from "#shared/fleet/forecast/forecast.ts";
import type { PlannedObject } from "#shared/fleet/forecast/moved-objects.ts";
import { type Deletions, guardText } from "#shared/fleet/forecast/object-guards.ts";
import type { WindowWait } from "#shared/fleet/forecast/window-waits.ts";
import type { FieldDifference } from "#shared/kube/object-differences.ts";
import { describeObject } from "#shared/kube/object-id.ts";

export interface PlannedChange extends TargetChange {
  /** The changed objects, if both renderings are known. */
  readonly objects?: readonly PlannedObject[];
}

/** The plan of one group, in the form of `-o json`. */
export interface ShownPlan extends Omit<Forecast, "differences"> {
  readonly kind: "Plan";
  readonly namespace: string;
  readonly owner: string;
  readonly revision: string;
  readonly differences: readonly (Omit<ClusterDifference, "changes"> & {
    readonly changes: readonly PlannedChange[];
  })[];
  /** The deletions, and what keeps or holds back single objects. */
  readonly deletions: Deletions;
  /** The reasons that hold the plan back, or ask first. */
  readonly guards: readonly string[];
  /** The windows that changed clusters would wait for. */
  readonly windows: readonly WindowWait[];
  /** The plans that stages will ask people to approve. */
  readonly approvals: readonly StageAsks[];
  /** Clusters whose rows this version cannot read. */
  readonly unreadable: readonly string[];
}

/** Limits for one difference; `--all` shows the rest. */
const objectsShown = 20;
const fieldsShown = 8;
const differencesShown = 10;
const guardsShown = 10;
const valueLength = 60;
const marks = { created: "+", changed: "~", deleted: "-" } as const;

/** The text of a plan. It has as many lines for ten clusters as for ten thousand. */
export function planText(plan: ShownPlan, extent: "some" | "all"): string {
  const { hash, namespace, owner, revision, selected, unchanged, differences, stages, guards, windows, unreadable } =
    plan;
  const changing = stages.reduce((all, stage) => all + stage.changing, 0);
  const shown = extent === "all" ? differences : differences.slice(0, differencesShown);
  const lines = [
    `Plan ${hash.slice("sha256:".length, "sha256:".length + 7)} for ${owner} -n ${namespace}   (${revision}, compared with the assigned renderings; no cluster was asked)`,
    `${counted(selected, "cluster")} selected: ${changing} would change, ${unchanged} unchanged`,
    ...shown.flatMap(({ clusters, changes }, index) => [
      "",
      `[${index + 1}] ${clustersText(clusters)}`,
      ...changes.flatMap((change) => changeLines(change, extent)),
    ]),
    ...(shown.length < differences.length
      ? ["", `and ${differences.length - shown.length} more differences (--all)`]
      : []),
    ...(changing === 0
      ? []
      : [
          "",
          `Order: ${stages.map(({ name, changing: some, clusters }) => `${name} ${some} of ${clusters}`).join(" -> ")}`,
        ]),
    ...appliesLines(plan),
    ...deletionLines(plan.deletions, extent),
    ...plan.approvals.map((asks) => approvalText(asks, plan)),
    ...guards.map((guard) => `Guard: ${guard}`),
    ...windows.map(
      ({ window, until, text, clusters }) =>
        `Window: ${clustersText(clusters)} would wait for ${window.includes(", ") ? "windows" : "window"} ${window}${until === undefined ? "," : ""} ${text}`,
    ),
    ...(unreadable.length === 0
      ? []
      : [`Not shown: ${clustersText(unreadable)}: a newer version of Starling wrote their rows`]),
  ];
  return lines.map((line) => `${plainLine(line)}\n`).join("");
}

/** The line has the command that approves the stage's plan as soon as the rollout has its number. */
function approvalText({ stage, plan, count }: StageAsks, { namespace, owner }: ShownPlan): string {
  const asks = `Approval: stage ${stage} needs ${counted(count, "approval")}`;
  if (plan === undefined) return `${asks}; the hash of its plan is known when its clusters are registered`;
  const group = owner.replace(/^syncgroup\//, "");
  return `${asks} of plan ${plan}: starling rollout approve ${group} -n ${namespace} --stage ${stage} --plan ${plan} --reason TEXT`;
}

function appliesLines({ applies: { installs, upgrades } }: ShownPlan): readonly string[] {
  if (installs + upgrades === 0) return [];
  return [`Applies: ${counted(installs, "first install")}, ${counted(upgrades, "upgrade")}`];
}

const effects = { kept: "Stays", waits: "Guard", unasked: "Note" } as const;

function deletionLines({ objects, clusters, guards }: Deletions, extent: "some" | "all"): readonly string[] {
  const shown = extent === "all" ? guards : guards.slice(0, guardsShown);
  return [
    ...(objects === 0
      ? []
      : [
          `Deletes: ${counted(objects, "object")} on ${counted(clusters, "cluster")}: in a changed template after it is applied, in a removed template at the same time as others are applied`,
        ]),
    ...shown.map((guard) => `${effects[guard.effect]}: ${guardText(guard)}`),
    ...(shown.length < guards.length ? [`and ${guards.length - shown.length} more guards (--all)`] : []),
  ];
}

function changeLines(change: PlannedChange, extent: "some" | "all"): readonly string[] {
  const { sync, how, reason, event, objects = [], apply } = change;
  const said = {
    install: "is new on these clusters",
    change: `changes${event === "install" ? ", as a first install" : ""}`,
    options: "changes only its apply options; its objects stay the same",
    delete: "is deleted with its objects",
    leave: "is removed; its objects stay",
    fail: `cannot be rendered: ${reason ?? ""}`,
  }[how];
  const shown = extent === "all" ? objects : objects.slice(0, objectsShown);
  const kept =
    apply?.prune === false && objects.some(({ how: what, movedTo }) => what === "deleted" && movedTo === undefined);
  return [
    `  ${sync} ${said}`,
    ...shown.flatMap((object) => objectLines(object, extent)),
    ...(shown.length < objects.length ? [`    and ${objects.length - shown.length} more objects (--all)`] : []),
    ...(kept ? ["    (prune: false, so that objects marked - stay)"] : []),
  ];
}

function objectLines(object: PlannedObject, extent: "some" | "all"): readonly string[] {
  const { id, how, fields, movedFrom, movedTo } = object;
  const shown = extent === "all" ? fields : fields.slice(0, fieldsShown);
  const isMoved = movedFrom !== undefined || movedTo !== undefined;
  const way = movedTo === undefined ? movedFrom && `  moves here from ${movedFrom}` : `  moves to ${movedTo}`;
  return [
    `    ${isMoved ? ">" : marks[how]} ${describeObject(id)}${way ?? ""}`,
    ...shown.map((field) => `        ${fieldText(field)}`),
    ...(shown.length < fields.length ? [`        and ${fields.length - shown.length} more fields (--all)`] : []),
  ];
}

function fieldText({ field, before, after }: FieldDifference): string {
  return `${field}  ${valueText(before)} -> ${valueText(after)}`;
}

function valueText(value: FieldDifference["before"]): string {
  if (value === undefined) return "(none)";
  const text = stringifyJson(value);
  return text.length <= valueLength ? text : `${text.slice(0, valueLength)}…`;
}
