import { conditionsText, eventsText, fieldsText, nextText, sectionText } from "#cli/format/describe-text.ts";
import { digestText } from "#cli/format/get-table.ts";
import { inputsText, type ShownInputs } from "#cli/format/inputs-text.ts";
import { objectsText } from "#cli/format/objects-text.ts";
import { formatTable } from "#cli/format/table.ts";
import { plainLine } from "#shared/base/plain-text.ts";
import type { ApiList, EventItem, SyncObject } from "#shared/fleet/api/objects.ts";
import type { SyncObjectItem } from "#shared/fleet/api/sync-objects.ts";
import type { Drift, ObjectProblem, ObjectWarning } from "#shared/fleet/rows/sync-row.ts";
import type { ForeignObject } from "#shared/kube/membership.ts";
import { describeObject } from "#shared/kube/object-id.ts";
import { formatAge, formatTime } from "#shared/words/age.ts";
import { nextTryText } from "#shared/words/next-try.ts";
import { actText, frozenText, objectState, reasonText } from "#shared/words/object-state.ts";
import { revisionText } from "#shared/words/revision-text.ts";

export interface DescribedSync {
  readonly sync: SyncObject;
  /** Newest first. */
  readonly events: readonly EventItem[];
  /** The worst first, or why they are not known. */
  readonly objects?: ApiList<SyncObjectItem> | { readonly unknown: string };
  readonly inputs?: ShownInputs;
  /** Width of the terminal. Absent: nothing is cut. */
  readonly columns?: number | undefined;
  readonly now: Date;
}

/** The page of one Sync on one cluster: its desired and actual state, its problems, and what to do. */
export function describeSync({ sync, events, objects, inputs = [], columns, now }: DescribedSync): string {
  const { metadata, spec, status, operations } = sync;
  const { observed } = status;
  const state = objectState(sync);
  return [
    fieldsText([
      ["Name", metadata.name],
      ["Namespace", metadata.namespace],
      ["Group", status.group === undefined ? undefined : `${status.group}   Template: ${status.template ?? ""}`],
      ["Cluster", spec.cluster],
      [
        "From",
        spec.source === ""
          ? undefined
          : `source/${spec.source}${spec.revision === undefined ? "" : ` at ${spec.revision}`}   path ${spec.path}`,
      ],
      ["Suspended", operations?.suspended === undefined ? undefined : actText(operations.suspended)],
      ["Frozen", status.frozen === undefined ? undefined : frozenText(status.frozen)],
      ["Out of sync", outOfSyncText(sync)],
      ["Desired", desiredText(sync, now)],
      ["Applied", appliedText(sync, now)],
      [
        "Status",
        `${state.word} for ${formatAge(state.since, now)}, seen ${formatAge(state.seenAt, now)} ago${state.remark === "" ? "" : `   ${state.remark}`}`,
      ],
      ["Next try", state.word === "Retrying" ? nextTryText(observed, now) : undefined],
    ]),
    inputsText(inputs, { cluster: spec.cluster, columns }),
    sectionText("Conditions", conditionsText(status.conditions, now)),
    sectionText("Objects with problems", problemsText(observed?.problems)),
    sectionText("Objects not corrected any more", problemsText(observed?.leftAlone)),
    warningsText(observed?.warnings),
    leftOutText(status.desired?.leftOut),
    observed === undefined
      ? ""
      : `\nObjects: ${observed.objects.total}   ready ${observed.objects.ready}   failed ${observed.objects.failed}   foreign ${observed.objects.foreign}\n`,
    heldText(sync, { objects, columns, now }),
    driftText(observed?.drift, now),
    observed?.rebuilt === undefined
      ? ""
      : `Inventory: ${plainLine(observed.rebuilt.message)}, ${formatTime(observed.rebuilt.at, now)}\n`,
    sectionText("Foreign objects", foreignText(sync)),
    pruneText(sync),
    sectionText("Events", eventsText(events, now)),
    nextText([...nextCommands(sync, state.word), ...pruneCommands(sync)]),
  ].join("");
}

/** Object by object, the worst first. */
function heldText(
  { status, spec, metadata }: SyncObject,
  {
    objects: list,
    columns,
    now,
  }: Pick<DescribedSync, "columns" | "now"> & { readonly objects: DescribedSync["objects"] | undefined },
): string {
  if (list === undefined) return "";
  if ("unknown" in list) return `  objects not known: ${plainLine(list.unknown)}\n`;
  const left = (status.observed?.objects.total ?? 0) - list.items.length;
  const command = `starling tree sync/${metadata.name} --cluster ${spec.cluster} -n ${metadata.namespace ?? ""} --all`;
  const more =
    list.metadata.continue === undefined ? {} : { more: `and ${left > 0 ? `${left} ` : ""}more: ${command}` };
  return objectsText(list.items, { now, columns, ...more });
}

/** The drift that the last check found, by object and field. */
function driftText(drift: Drift | undefined, now: Date): string {
  if (drift === undefined) return "";
  const { objects, at, corrected, named = [] } = drift;
  const word = objects === 1 ? "object" : "objects";
  const head = `Drift: ${objects} ${word} at ${formatTime(at, now)}${corrected ? ", corrected" : ", not corrected"}\n`;
  const rest = named.length > 0 && objects > named.length ? `  and ${objects - named.length} more\n` : "";
  return `${head}${problemsText(named)}${rest}`;
}

/** The revision of a later rollout that was not assigned to this cluster, and why. */
function outOfSyncText({ metadata, status: { outOfSync, group } }: SyncObject): string | undefined {
  if (outOfSync === undefined) return undefined;
  return `${revisionText(outOfSync.revision)}   by ${group ?? metadata.name}-${outOfSync.rollout}: ${outOfSync.reason}`;
}

function desiredText({ status: { desired, group } }: SyncObject, now: Date): string {
  if (desired === undefined) return "nothing assigned yet";
  const from = group === undefined ? `rollout ${desired.rollout}` : `${group}-${desired.rollout}`;
  const digest = desired.renderDigest === undefined ? "" : `   render ${digestText(desired.renderDigest)}`;
  const action = desired.action === "apply" ? "" : `${desired.action}: `;
  return `${action}${revisionText(desired.revision)}${digest}   by ${from}, attempt ${desired.attempt}, assigned ${formatTime(desired.assignedAt, now)}`;
}

function appliedText({ status: { desired, observed } }: SyncObject, now: Date): string {
  const applied = observed?.applied;
  if (applied === undefined) return "nothing";
  const behind = applied.renderDigest === desired?.renderDigest ? "" : "   (not the assigned rendering)";
  return `${revisionText(applied.revision)}   render ${digestText(applied.renderDigest)}   ${formatTime(applied.at, now)}${behind}`;
}

/** Warnings in kubectl's format. */
function warningsText(warnings: readonly ObjectWarning[] = []): string {
  const lines = warnings.map(({ object, message }) => plainLine(`Warning: ${message} (${object})`));
  return lines.length === 0 ? "" : `\n${lines.join("\n")}\n`;
}

function leftOutText(texts: readonly string[] = []): string {
  return texts.length === 0 ? "" : `\nNot supported:\n${texts.map((text) => `  ${plainLine(text)}\n`).join("")}`;
}

function problemsText(problems: readonly ObjectProblem[] = []): string {
  const rows = problems.map(({ object, reason, message }) => [object, reasonText(reason, message)]);
  return formatTable({ columns: ["", ""], rows }, { headers: "hide", indent: "  " });
}

/** Objects that have the Sync's label and are not in its inventory. */
function foreignText({ status: { observed } }: SyncObject): string {
  const named = observed?.foreign ?? [];
  const rows = named.map((object) => [describeObject(object.id), foreignReason(object)]);
  const unnamed = (observed?.objects.foreign ?? 0) - named.length;
  if (named.length > 0 && unnamed > 0) rows.push([`and ${unnamed} more`, ""]);
  return formatTable({ columns: ["", ""], rows }, { headers: "hide", indent: "  " });
}

function pruneText({ status: { prune } }: SyncObject): string {
  if (prune === undefined) return "";
  const word = prune.objects.length === 1 ? "object" : "objects";
  return `Pruned:  ${prune.objects.length} ${word}, ${prune.handled ? "done" : "not done yet"}: ${plainLine(actText(prune))}\n`;
}

function foreignReason({ member, keep }: ForeignObject): string {
  if (!member) return "only has a copy of the Sync's label";
  const once = "applied by this Sync earlier; not in its inventory and not in git";
  return keep === undefined ? once : `${once}; ${keep}`;
}

function pruneCommands({ metadata, spec, status }: SyncObject): readonly string[] {
  const prunable = (status.observed?.foreign ?? []).some(({ member, keep }) => member && keep === undefined);
  if (!prunable || status.prune?.handled === false) return [];
  const where = `--cluster ${spec.cluster} -n ${metadata.namespace ?? ""}`;
  return [`starling prune sync/${metadata.name} ${where}   (deletes the foreign objects that it applied)`];
}

function nextCommands({ metadata, status, spec }: SyncObject, word: string): readonly string[] {
  const namespace = `-n ${metadata.namespace ?? ""}`;
  const owner = status.group === undefined ? `sync/${metadata.name}` : `syncgroup/${status.group}`;
  const rollout = status.group ?? `sync/${metadata.name}`;
  if (word === "Failed") {
    return [
      `starling rollout status ${rollout} ${namespace}   (shows its progress and failures)`,
      `starling reconcile ${owner} --with-source ${namespace}   (after the repair in git)`,
    ];
  }
  if (word === "Unreachable") return [`starling describe cluster/${spec.cluster}`];
  if (word === "Waiting") return [`starling get sources ${namespace}`];
  if (word === "ClusterNotFound") return ["starling get clusters"];
  if (word === "OutOfSync" || word === "Halted" || word === "Stalled") {
    return [`starling rollout status ${rollout} ${namespace}   (shows its progress and failures)`];
  }
  if (word === "Retrying") return [`starling reconcile ${owner} ${namespace}   (tries again now)`];
  if (word === "Frozen" && status.frozen !== undefined) return [`starling thaw ${status.frozen.name}`];
  if ((status.observed?.leftAlone ?? []).length > 0) {
    return [`starling reconcile ${owner} ${namespace}   (corrects these objects once more)`];
  }
  if (word === "Suspended") return [`starling resume ${owner} ${namespace}`];
  return [];
}
