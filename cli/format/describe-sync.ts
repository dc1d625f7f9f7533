import { conditionsText, eventsText, fieldsText, nextText, sectionText } from "#cli/format/describe-text.ts";
import { digestText } from "#cli/format/get-table.ts";
import { inputsText, type ShownInputs } from "#cli/format/inputs-text.ts";
import { objectsText } from "#cli/format/objects-text.ts";
import { formatTable } from "#cli/format/table.ts";
import { plainLine, plainText } from "#shared/base/plain-text.ts";
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
  /** The worst first, or why nobody can tell. */
  readonly objects?: ApiList<SyncObjectItem> | { readonly unknown: string };
  readonly inputs?: ShownInputs;
  /** Of the terminal; absent: nothing is cut. */
  readonly columns?: number | undefined;
  readonly now: Date;
}

/** One Sync on one cluster: what is desired, what is there, what is wrong and what to do. */
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
      ["From", spec.source === "" ? undefined : `source/${spec.source}   path ${spec.path}`],
      ["Suspended", operations?.suspended === undefined ? undefined : actText(operations.suspended)],
      ["Frozen", status.frozen === undefined ? undefined : frozenText(status.frozen)],
      ["Wanted", wantedText(sync)],
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
    sectionText("Objects in trouble", problemsText(observed?.problems)),
    sectionText("Objects left alone", problemsText(observed?.leftAlone)),
    warningsText(observed?.warnings),
    leftOutText(status.desired?.leftOut),
    observed === undefined
      ? ""
      : `\nObjects: ${observed.objects.total}   ready ${observed.objects.ready}   failed ${observed.objects.failed}   foreign ${observed.objects.foreign}\n`,
    heldText(sync, { objects, columns, now }),
    driftText(observed?.drift, now),
    observed?.rebuilt === undefined
      ? ""
      : `Inventory: ${plainText(observed.rebuilt.message)}, ${formatTime(observed.rebuilt.at, now)}\n`,
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
  if ("unknown" in list) return `  object by object: ${plainText(list.unknown)}\n`;
  const left = (status.observed?.objects.total ?? 0) - list.items.length;
  const command = `starling tree sync/${metadata.name} --cluster ${spec.cluster} -n ${metadata.namespace ?? ""} --all`;
  const more = list.metadata.continue === undefined ? {} : { more: `… ${left > 0 ? `${left} ` : ""}more: ${command}` };
  return objectsText(list.items, { now, columns, ...more });
}

/** What had drifted when that was looked for last, by object and field. */
function driftText(drift: Drift | undefined, now: Date): string {
  if (drift === undefined) return "";
  const { objects, at, corrected, named = [] } = drift;
  const word = objects === 1 ? "object" : "objects";
  const head = `Drift: ${objects} ${word} at ${formatTime(at, now)}${corrected ? ", corrected" : ", not corrected"}\n`;
  const rest = named.length > 0 && objects > named.length ? `  and ${objects - named.length} more\n` : "";
  return `${head}${problemsText(named)}${rest}`;
}

/** What is wanted and was not assigned. */
function wantedText({ metadata, status: { outOfSync, group } }: SyncObject): string | undefined {
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
  const behind = applied.renderDigest === desired?.renderDigest ? "" : "      <- still running this";
  return `${revisionText(applied.revision)}   render ${digestText(applied.renderDigest)}   ${formatTime(applied.at, now)}${behind}`;
}

/** As kubectl prints them. */
function warningsText(warnings: readonly ObjectWarning[] = []): string {
  const lines = warnings.map(({ object, message }) => plainLine(`Warning: ${message} (${object})`));
  return lines.length === 0 ? "" : `\n${lines.join("\n")}\n`;
}

function leftOutText(texts: readonly string[] = []): string {
  return texts.length === 0 ? "" : `\nNot honoured:\n${texts.map((text) => `  ${plainLine(text)}\n`).join("")}`;
}

function problemsText(problems: readonly ObjectProblem[] = []): string {
  const rows = problems.map(({ object, reason, message }) => [object, reasonText(reason, message)]);
  return formatTable({ columns: ["", ""], rows }, { headers: "hide", indent: "  " });
}

/** What carries the Sync's label and is not recorded. */
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
  return `Pruned:  ${prune.objects.length} ${word}, ${prune.handled ? "done" : "not done yet"}: ${plainText(actText(prune))}\n`;
}

function foreignReason({ member, keep }: ForeignObject): string {
  if (!member) return "only bears a copy of the Sync's label";
  const once = "applied by this Sync once, not recorded and not in git";
  return keep === undefined ? once : `${once}; ${keep}`;
}

function pruneCommands({ metadata, spec, status }: SyncObject): readonly string[] {
  const prunable = (status.observed?.foreign ?? []).some(({ member, keep }) => member && keep === undefined);
  if (!prunable || status.prune?.handled === false) return [];
  const where = `--cluster ${spec.cluster} -n ${metadata.namespace ?? ""}`;
  return [`starling prune sync/${metadata.name} ${where}     delete the foreign objects it once applied`];
}

function nextCommands({ metadata, status, spec }: SyncObject, word: string): readonly string[] {
  const namespace = `-n ${metadata.namespace ?? ""}`;
  const owner = status.group === undefined ? `sync/${metadata.name}` : `syncgroup/${status.group}`;
  const rollout = status.group ?? `sync/${metadata.name}`;
  if (word === "Failed") {
    return [
      `starling rollout status ${rollout} ${namespace}     how far it went, and where it failed`,
      `starling reconcile ${owner} --with-source ${namespace}     after the source was mended`,
    ];
  }
  if (word === "Unreachable") return [`starling describe cluster/${spec.cluster}`];
  if (word === "Waiting") return [`starling get sources ${namespace}`];
  if (word === "ClusterNotFound") return ["starling get clusters"];
  if (word === "OutOfSync" || word === "Halted" || word === "Stalled") {
    return [`starling rollout status ${rollout} ${namespace}     how far it went, and where it failed`];
  }
  if (word === "Retrying") return [`starling reconcile ${owner} ${namespace}     try now instead of later`];
  if (word === "Frozen" && status.frozen !== undefined) return [`starling thaw ${status.frozen.name}`];
  if ((status.observed?.leftAlone ?? []).length > 0) {
    return [`starling reconcile ${owner} ${namespace}     put back what is left alone, once more`];
  }
  if (word === "Suspended") return [`starling resume ${owner} ${namespace}`];
  return [];
}
