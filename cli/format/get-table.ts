import type { TextTable } from "#cli/format/table.ts";
import { windowSelectionText } from "#cli/format/window-selection.ts";
import { hasNamespace, type KindName } from "#cli/session/kind-names.ts";
import type {
  AnyObject,
  ClusterObject,
  ClusterValuesObject,
  DiscoveryObject,
  ReceiverObject,
  RolloutObject,
  SourceObject,
  SyncGroupObject,
  SyncObject,
  WindowObject,
} from "#shared/fleet/api/objects.ts";
import { isUnreadable, type ListedObject, type UnreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import { selectionText } from "#shared/fleet/kinds/cluster-selection.ts";
import { addressOf } from "#shared/fleet/kinds/source.ts";
import { homeZone } from "#shared/fleet/kinds/zone-name.ts";
import type { TargetState } from "#shared/fleet/rows/rollout-rows.ts";
import { staleSince } from "#shared/fleet/sources/stale-source.ts";
import { openingText } from "#shared/fleet/windows/opening-text.ts";
import { formatAge } from "#shared/words/age.ts";
import { objectState } from "#shared/words/object-state.ts";
import { revisionText } from "#shared/words/revision-text.ts";
import { stateRank } from "#shared/words/state-words.ts";

export interface TableOptions {
  readonly now: Date;
  readonly width: "normal" | "wide";
  readonly namespaces: "all" | "one";
  /** `kinds`: the name of each object is `kind/name`. */
  readonly names?: "names" | "kinds";
}

interface Column<O> {
  readonly name: string;
  readonly cell: (object: O, options: TableOptions) => string;
  readonly wideOnly?: true;
}

/** The table of `get`: one line for each object, in the given order. */
export function getTable(kind: KindName, objects: readonly ListedObject[], options: TableOptions): TextTable {
  const columns = columnsOf[kind].filter((column) => column.wideOnly !== true || options.width === "wide");
  const namespace = hasNamespace(kind) && options.namespaces === "all";
  return {
    columns: [...(namespace ? ["NAMESPACE"] : []), ...columns.map((column) => column.name)],
    rows: objects.map((object) => [
      ...(namespace ? [object.metadata.namespace ?? ""] : []),
      ...columns.map((column) =>
        isUnreadable(object) ? unreadableCell(column, object, options) : column.cell(object, options),
      ),
    ]),
  };
}

/** The cell of a row that only a newer version can read. Its key gives the name and the cluster. */
function unreadableCell({ name: column }: Column<AnyObject>, object: UnreadableObject, options: TableOptions): string {
  if (column === name.name) return name.cell(object, options);
  if (column === "CLUSTER") return object.spec.cluster ?? "-";
  if (column === state.name) return objectState(object).word;
  return column === remark.name ? remark.cell(object) : "-";
}

/** Worst state first, then by namespace and name. */
export function worstObjectsFirst<O extends ListedObject>(objects: readonly O[]): readonly O[] {
  const place = (object: O) =>
    `${object.metadata.namespace ?? ""}/${object.metadata.name}/${object.kind === "Sync" ? object.spec.cluster : ""}`;
  return [...objects].sort(
    (a, b) =>
      stateRank(objectState(a).word) - stateRank(objectState(b).word) ||
      place(a).localeCompare(place(b), "en", { numeric: true }),
  );
}

const name = {
  name: "NAME",
  cell: (object: ListedObject, { names }: TableOptions) =>
    names === "kinds" ? `${object.kind.toLowerCase()}/${object.metadata.name}` : object.metadata.name,
};
const state = { name: "STATE", cell: (object: AnyObject) => objectState(object).word };
const since = {
  name: "FOR",
  cell: (object: AnyObject, { now }: TableOptions) => formatAge(objectState(object).since, now),
};
const seen = {
  name: "SEEN",
  cell: (object: AnyObject, { now }: TableOptions) => formatAge(objectState(object).seenAt, now),
};
const remark = {
  name: "",
  cell: (object: ListedObject) => objectState(object).remark,
};

const sourceColumns: readonly Column<SourceObject>[] = [
  name,
  { name: "REVISION", cell: (source) => revisionText(source.status.artifact?.revision) },
  state,
  since,
  seen,
  { name: "STALE", cell: (source, { now }) => formatAge(staleSince(source, now), now), wideOnly: true },
  { name: "URL", cell: (source) => addressOf(source.spec), wideOnly: true },
  { name: "DIGEST", cell: (source) => digestText(source.status.artifact?.digest), wideOnly: true },
  remark,
];

const receiverColumns: readonly Column<ReceiverObject>[] = [
  name,
  { name: "PROVIDER", cell: ({ spec }) => spec.provider },
  { name: "SOURCES", cell: ({ status }) => status.sources.join(",") || "-" },
  state,
  { name: "LAST DELIVERY", cell: ({ status }, { now }) => formatAge(status.lastDelivery?.at, now) },
  { name: "URL", cell: ({ status }) => status.url },
  remark,
];

const discoveryColumns: readonly Column<DiscoveryObject>[] = [
  name,
  { name: "ACCOUNTS", cell: ({ status }) => String(status.accounts ?? "-") },
  { name: "FOUND", cell: ({ status }) => String(status.clusters?.found ?? "-") },
  { name: "REFUSED", cell: ({ status }) => String(status.clusters?.refused ?? "-") },
  { name: "GONE", cell: ({ status }) => String(status.clusters?.gone ?? "-") },
  state,
  since,
  seen,
  { name: "REGIONS", cell: ({ spec }) => spec.eks.regions.join(","), wideOnly: true },
  remark,
];

const clusterColumns: readonly Column<ClusterObject>[] = [
  name,
  { name: "VERSION", cell: (cluster) => cluster.status.version ?? "-" },
  state,
  since,
  seen,
  {
    name: "SYNCS",
    cell: ({ status: { syncs } }) => (syncs === undefined ? "-" : `${syncs.ready}/${syncs.total}`),
  },
  { name: "LABELS", cell: ({ metadata, status }) => labelsText(status.labels ?? metadata.labels) },
  {
    name: "SERVER",
    cell: ({ spec, status: { discovered } }) => spec.eks?.arn ?? spec.endpoint?.server ?? discovered?.arn ?? "-",
    wideOnly: true,
  },
  {
    name: "ZONE",
    cell: ({ spec, status: { discovered } }) => spec.access?.zone ?? discovered?.access?.zone ?? homeZone,
    wideOnly: true,
  },
  { name: "UID", cell: (cluster) => cluster.status.uid ?? "-", wideOnly: true },
  remark,
];

const valuesColumns: readonly Column<ClusterValuesObject>[] = [
  name,
  { name: "PRIORITY", cell: ({ spec }) => String(spec.priority) },
  { name: "CLUSTERS", cell: ({ status }) => String(status.clusters ?? "-") },
  { name: "SELECTION", cell: ({ spec }) => selectionText(spec.clusters) },
  state,
  { name: "VALUES", cell: ({ spec }) => Object.keys(spec.values).sort().join(",") || "-" },
];

const windowColumns: readonly Column<WindowObject>[] = [
  name,
  { name: "OPEN", cell: ({ status }) => (status.open ? "yes" : "no") },
  { name: "CLUSTERS", cell: ({ status }) => String(status.clusters ?? "-") },
  { name: "SELECTION", cell: ({ spec }) => windowSelectionText(spec) },
  state,
  {
    name: "NEXT OPENING",
    cell: ({ spec, status: { nextOpening } }) =>
      nextOpening === undefined ? "-" : openingText(spec, new Date(nextOpening)),
    wideOnly: true,
  },
  {
    name: "NEXT CLOSING",
    cell: ({ spec, status: { nextClosing } }) =>
      nextClosing === undefined ? "-" : openingText(spec, new Date(nextClosing)),
    wideOnly: true,
  },
  remark,
];

const groupColumns: readonly Column<SyncGroupObject>[] = [
  name,
  { name: "REVISION", cell: (group) => revisionText(group.status.revision) },
  {
    name: "ROLLOUT",
    cell: (group) => (group.status.rollout === undefined ? "-" : `${group.metadata.name}-${group.status.rollout}`),
  },
  { name: "STAGE", cell: groupStageText },
  {
    name: "READY",
    cell: ({ status }) =>
      status.clusters === undefined ? "-" : `${status.clusters.ready}/${status.clusters.selected}`,
  },
  { name: "CHANGING", cell: ({ status }) => String(status.clusters?.changing ?? "-") },
  { name: "FAILED", cell: ({ status }) => String(status.clusters?.failed ?? "-") },
  { name: "UNREACH", cell: ({ status }) => String(status.clusters?.unreachable ?? "-") },
  state,
  since,
  seen,
  { name: "CURRENT", cell: onText, wideOnly: true },
  {
    name: "TEMPLATES",
    cell: (group) => group.spec.templates.map((template) => template.name).join(","),
    wideOnly: true,
  },
  remark,
];

const syncColumns: readonly Column<SyncObject>[] = [
  name,
  { name: "CLUSTER", cell: (sync) => sync.spec.cluster },
  { name: "REVISION", cell: (sync) => revisionText(sync.status.observed?.applied?.revision) },
  { name: "READY", cell: readyText },
  state,
  since,
  seen,
  {
    name: "DESIRED",
    cell: ({ status: { outOfSync, desired } }) => revisionText((outOfSync ?? desired)?.revision),
    wideOnly: true,
  },
  { name: "DIGEST", cell: (sync) => digestText(sync.status.observed?.applied?.renderDigest), wideOnly: true },
  { name: "ATTEMPT", cell: (sync) => String(sync.status.desired?.attempt ?? "-"), wideOnly: true },
  remark,
];

const rolloutColumns: readonly Column<RolloutObject>[] = [
  name,
  { name: "REVISION", cell: (rollout) => revisionText(rollout.spec.revision) },
  { name: "TRIGGER", cell: (rollout) => rollout.spec.trigger },
  { name: "STAGE", cell: stageText },
  { name: "DONE", cell: (rollout) => `${countOf(rollout, "Succeeded", "Unchanged")}/${rollout.status.size}` },
  { name: "FAILED", cell: (rollout) => String(countOf(rollout, "Failed")) },
  state,
  since,
  { name: "AGE", cell: (rollout, { now }) => formatAge(rollout.metadata.creationTimestamp, now) },
  { name: "FROM", cell: (rollout) => revisionText(rollout.spec.fromRevision), wideOnly: true },
  remark,
];

const columnsOf = {
  Source: sourceColumns,
  Receiver: receiverColumns,
  ClusterDiscovery: discoveryColumns,
  ClusterValues: valuesColumns,
  Window: windowColumns,
  Cluster: clusterColumns,
  SyncGroup: groupColumns,
  Sync: syncColumns,
  Rollout: rolloutColumns,
} as unknown as Readonly<Record<KindName, readonly Column<AnyObject>[]>>;

export function digestText(digest: string | undefined): string {
  return digest === undefined ? "-" : digest.slice(0, "sha256:".length + 12);
}

export function countOf(rollout: RolloutObject, ...states: readonly TargetState[]): number {
  let sum = 0;
  for (const stage of rollout.status.stages) for (const word of states) sum += stage.counts[word];
  return sum;
}

/** The first stage that the rollout has not passed, or the last stage. */
function stageText({ status: { stages } }: RolloutObject): string {
  const open = stages.findIndex(({ phase }) => phase !== "Passed");
  return placeText(stages, open === -1 ? stages.length - 1 : open);
}

/** The first stage that is updating or behind the newest rollout; `+` gives the number of other stages that are updating. */
function groupStageText({ status: { stages = [], rollout } }: SyncGroupObject): string {
  const updatingTo = stages.flatMap((stage, index) => (stage.updatingTo === undefined ? [] : [index]));
  const behind = stages.findIndex(({ current }) => current !== rollout);
  const text = placeText(stages, updatingTo[0] ?? behind);
  return updatingTo.length > 1 ? `${text} +${updatingTo.length - 1}` : text;
}

function placeText(stages: readonly { readonly name: string }[], index: number): string {
  const stage = stages[index];
  return stage === undefined ? "-" : `${index + 1}/${stages.length} ${stage.name}`;
}

/** `canary 118→119, early 117`: the current rollout of each stage, and the one that it is updating to. */
function onText({ status: { stages = [] } }: SyncGroupObject): string {
  const texts = stages.map(({ name, current, updatingTo }) => {
    return `${name} ${current ?? "-"}${updatingTo === undefined ? "" : `→${updatingTo}`}`;
  });
  return texts.length === 0 ? "-" : texts.join(", ");
}

/** The objects of the newest attempt. The counts of an earlier attempt say nothing about it. */
function readyText({ status: { observed, desired, state } }: SyncObject): string {
  if (observed === undefined || observed.attempt !== desired?.attempt) return "-";
  const { ready, total } = observed.objects;
  return total === 0 && state !== "Ready" ? "-" : `${ready}/${total}`;
}

function labelsText(labels: Readonly<Record<string, string>> | undefined): string {
  const pairs = Object.entries(labels ?? {}).map(([key, value]) => `${key}=${value}`);
  return pairs.length === 0 ? "-" : pairs.join(",");
}
