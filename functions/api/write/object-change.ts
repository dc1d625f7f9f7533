/** Computes what one write of an object changes in the table and the queues: pure, from the row that was read. */
import { type ObjectReference, objectKey } from "#functions/api/request/reference.ts";
import { hasOtherWay } from "#shared/adapters/wake-unreachable.ts";
import { canonicalJson } from "#shared/base/json.ts";
import { renewalAt } from "#shared/fleet/blob-life.ts";
import { nextScan } from "#shared/fleet/discovery/next-scan.ts";
import type { ClusterSelection, SelectableCluster } from "#shared/fleet/kinds/cluster-selection.ts";
import type { Document } from "#shared/fleet/kinds/document.ts";
import { addressOf, includedIn } from "#shared/fleet/kinds/source.ts";
import { type SourcePin, templatePins, templateSources } from "#shared/fleet/kinds/template-sources.ts";
import { receiverId } from "#shared/fleet/receiver-id.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import { entryText, fleetRow } from "#shared/fleet/rows/cluster-entry.ts";
import type { DiscoveryRow } from "#shared/fleet/rows/discovery-rows.ts";
import { due, watchdogAt } from "#shared/fleet/rows/due.ts";
import { valuesVersionUpdate } from "#shared/fleet/rows/fleet-version.ts";
import { keys, type Owner } from "#shared/fleet/rows/keys.ts";
import { clusterSchema, discoverySchema, neededSchema, sourceSchema } from "#shared/fleet/rows/needed-schema.ts";
import type {
  ClusterRow,
  ClusterValuesRow,
  DirectoryRow,
  Operations,
  OwnerRow,
  ReceiverRow,
  SourceRow,
  SyncGroupRow,
  UserSyncRow,
  WindowRow,
} from "#shared/fleet/rows/object-rows.ts";
import { pinRequest } from "#shared/fleet/rows/pin-row.ts";
import { firstVersion, type RowKey, rowSchema } from "#shared/fleet/rows/row.ts";
import { clustersOf, windowUpdate } from "#shared/fleet/rows/windows-row.ts";
import { nextResolve } from "#shared/fleet/sources/next-resolve.ts";
import type { Message } from "#shared/messages.ts";
import type { Write } from "#shared/ports.ts";
import { normaliseGitUrl } from "#shared/source/git-url.ts";

/** The rows that people write. */
export type WrittenRow =
  | SourceRow
  | ReceiverRow
  | DiscoveryRow
  | ClusterRow
  | ClusterValuesRow
  | WindowRow
  | SyncGroupRow
  | UserSyncRow;

export type WriteOutcome = "created" | "configured" | "unchanged";

export interface ObjectChange {
  readonly outcome: WriteOutcome;
  readonly after: WrittenRow;
  /** One transaction; empty when nothing changed. */
  readonly writes: readonly Write[];
  readonly messages: readonly Message[];
  /** Clusters before and after the change: an owner that selects one of them plans again. */
  readonly clusters: readonly SelectableCluster[];
  /** Likewise, when only the selection is known. */
  readonly selections?: readonly ClusterSelection[];
  /** A Cluster that is reached in another way from now on. */
  readonly rerouted?: string;
}

export interface ChangeContext {
  readonly now: Date;
  /** For an object that does not exist yet. */
  readonly uid: string;
}

/** The row with the document applied: the spec and metadata are replaced, operations and status stay. */
export function documentChange(
  before: WrittenRow | undefined,
  document: Document,
  context: ChangeContext,
): ObjectChange {
  const labels = document.metadata.labels ?? {};
  const annotations = document.metadata.annotations ?? {};
  if (before === undefined) {
    const after = newRow(document, context);
    return { outcome: "created", ...rowChange(undefined, after, context.now) };
  }
  const specChanged = canonicalJson(before.spec) !== canonicalJson(document.spec);
  const labelsChanged = canonicalJson(before.labels) !== canonicalJson(labels);
  if (!specChanged && !labelsChanged && canonicalJson(before.annotations) === canonicalJson(annotations)) {
    return unchanged(before);
  }
  const after = {
    ...before,
    labels,
    annotations,
    spec: document.spec,
    generation: before.generation + (specChanged ? 1 : 0),
    version: before.version + 1,
  } as WrittenRow;
  return { outcome: "configured", ...rowChange(before, after, context.now) };
}

export function unchanged(before: WrittenRow): ObjectChange {
  return { outcome: "unchanged", after: before, writes: [], messages: [], clusters: [] };
}

/** The row with other operations, and the messages that follow. */
export function operationsChange(before: WrittenRow, operations: Operations, now: Date): ObjectChange {
  const after = { ...before, operations, version: before.version + 1 };
  return { outcome: "configured", ...rowChange(before, after, now) };
}

type RowChange = Omit<ObjectChange, "outcome">;

function rowChange(before: WrittenRow | undefined, after: WrittenRow, now: Date): RowChange {
  if (after.type === "Source") return sourceChange(before as SourceRow | undefined, after, now);
  if (after.type === "Receiver") return receiverChange(before as ReceiverRow | undefined, after);
  if (after.type === "ClusterDiscovery") return discoveryChange(before as DiscoveryRow | undefined, after, now);
  if (after.type === "Cluster") return clusterChange(before as ClusterRow | undefined, due(after, renewalAt(after)));
  if (after.type === "ClusterValues") return valuesChange(before as ClusterValuesRow | undefined, after);
  if (after.type === "Window") return windowChange(before as WindowRow | undefined, after);
  return ownerChange(before as OwnerRow | undefined, after, now);
}

function newRow(document: Document, { now, uid }: ChangeContext): WrittenRow {
  const reference: ObjectReference = { kind: document.kind, name: document.metadata.name, ...namespaceOf(document) };
  return {
    ...objectKey(reference),
    type: document.kind,
    schema: rowSchema,
    version: firstVersion(now),
    uid,
    name: document.metadata.name,
    ...namespaceOf(document),
    labels: document.metadata.labels ?? {},
    annotations: document.metadata.annotations ?? {},
    generation: 1,
    createdAt: now.toISOString(),
    spec: document.spec,
    operations: {},
    status: { conditions: [] },
  } as unknown as WrittenRow;
}

function namespaceOf(document: Document): { namespace?: string } {
  return "namespace" in document.metadata ? { namespace: document.metadata.namespace } : {};
}

function sourceChange(before: SourceRow | undefined, written: SourceRow, now: Date): RowChange {
  const after = { ...written, schema: sourceSchema(written) };
  const next = nextResolve(after);
  const dueNow = next !== undefined && next <= now.toISOString();
  // A direct message sets the watchdog as well, so that a lost message costs one watchdog.
  const row = dueNow ? due(after, watchdogAt(now, 0), 1) : due(after, next);
  const reference = { namespace: after.namespace, name: after.name };
  const repository = repositoryOf(after);
  const previous = before === undefined ? undefined : repositoryOf(before);
  const writes = [putRow(before, row)];
  if (before === undefined) writes.push({ put: directoryRow(keys.sourceEntry(reference)) });
  if (previous !== repository) writes.push({ put: directoryRow(keys.repository(repository, reference)) });
  if (previous !== undefined && previous !== repository) writes.push({ delete: keys.repository(previous, reference) });
  const included = includedIn(after.spec);
  const includedBefore = before === undefined ? [] : includedIn(before.spec);
  const entry = (name: string) => keys.includes({ namespace: after.namespace, name }, after.name);
  writes.push(...entryWrites(includedBefore, included, entry));
  return { after: row, writes, messages: dueNow ? [{ to: "resolve", source: reference }] : [], clusters: [] };
}

/** The entry in the directory of Receivers is what makes the URL known. */
function receiverChange(before: ReceiverRow | undefined, after: ReceiverRow): RowChange {
  const writes = [putRow(before, after)];
  if (before === undefined) writes.push({ put: directoryRow(keys.receiverEntry(receiverId(after), after)) });
  return { after, writes, messages: [], clusters: [] };
}

function discoveryChange(before: DiscoveryRow | undefined, written: DiscoveryRow, now: Date): RowChange {
  const after = { ...written, schema: discoverySchema(written) };
  const next = nextScan(after);
  const dueNow = next !== undefined && next <= now.toISOString();
  const row = dueNow ? due(after, watchdogAt(now, 0), 1) : due(after, next);
  const messages: Message[] = dueNow ? [{ to: "discover", discovery: after.name }] : [];
  return { after: row, writes: [putRow(before, row)], messages, clusters: [] };
}

/** The checks of the API accept only URLs that name something; any other text would be an entry of its own. */
export function repositoryOf(row: SourceRow): string {
  const address = addressOf(row.spec);
  return normaliseGitUrl(address) ?? address;
}

/** The entry in the fleet's directory stays when nothing that the planner needs has changed. */
function clusterChange(before: ClusterRow | undefined, written: ClusterRow): RowChange {
  const after = { ...written, schema: clusterSchema(written) };
  const fleet = fleetRow(after);
  const old = before === undefined ? [] : [fleetRow(before)];
  const rerouted = before !== undefined && hasOtherWay(before, after) ? { rerouted: after.name } : {};
  if (old.some((row) => entryText(row) === entryText(fleet)))
    return { after, writes: [putRow(before, after)], messages: [], clusters: [], ...rerouted };
  const writes = [putRow(before, after), { put: fleet }];
  return { after, writes, messages: [], clusters: [...old, fleet], ...rerouted };
}

/** Values of a ClusterValues are not written to the clusters: each plan combines them with the clusters' own values. */
function valuesChange(before: ClusterValuesRow | undefined, after: ClusterValuesRow): RowChange {
  const put = putRow(before, after);
  const said = ({ spec }: ClusterValuesRow) => canonicalJson(spec);
  if (before !== undefined && said(before) === said(after)) return { after, writes: [put], messages: [], clusters: [] };
  const selections = [...(before === undefined ? [] : [before.spec.clusters]), after.spec.clusters];
  return { after, writes: [put, valuesVersionUpdate()], messages: [], clusters: [], selections };
}

/** The planner reads the spec in the row of all windows. Owners of its clusters are told: it may open or close for them. */
function windowChange(before: WindowRow | undefined, after: WindowRow): RowChange {
  const put = putRow(before, after);
  const said = ({ spec }: WindowRow) => canonicalJson(spec);
  if (before !== undefined && said(before) === said(after)) return { after, writes: [put], messages: [], clusters: [] };
  const selections = [before, after].flatMap((row) => (row === undefined ? [] : [clustersOf(row.spec)]));
  return { after, writes: [put, windowUpdate(after.name, after.spec)], messages: [], clusters: [], selections };
}

function ownerChange(before: OwnerRow | undefined, after: OwnerRow, now: Date): RowChange {
  const owner = syncOwner(after);
  const schema = neededSchema(after);
  const row = { ...due(after, watchdogAt(now, 0), 1), schema };
  const writes = [putRow(before, row)];
  if (before === undefined) writes.push({ put: directoryRow(keys.owner(owner)) });
  const used = sourcesOf(after);
  const usedBefore = before === undefined ? new Set<string>() : sourcesOf(before);
  const uses = (name: string) => keys.uses({ namespace: after.namespace, name }, owner);
  writes.push(...entryWrites([...usedBefore], [...used], uses));
  const pins = pinsToFind(before, after);
  writes.push(...pins.map((pin) => pinRequest(after.namespace, pin, now)));
  const messages: Message[] = pins.map(({ source, revision }) => ({
    to: "resolve",
    source: { namespace: after.namespace, name: source },
    pin: revision,
  }));
  return { after: row, writes, messages: [...messages, { to: "rollout", owner, clusters: [] }], clusters: [] };
}

/** The entries of names that came are put, and those of names that went are deleted. */
function entryWrites(
  before: readonly string[],
  after: readonly string[],
  entry: (name: string) => Parameters<typeof directoryRow>[0],
): readonly Write[] {
  const [came, went] = [after.filter((name) => !before.includes(name)), before.filter((name) => !after.includes(name))];
  return [
    ...came.map((name) => ({ put: directoryRow(entry(name)) })),
    ...went.map((name) => ({ delete: entry(name) })),
  ];
}

/** The revisions that its templates name anew; all of them when somebody asks for a check. */
function pinsToFind(before: OwnerRow | undefined, after: OwnerRow): readonly SourcePin[] {
  if (after.operations.deletion !== undefined) return [];
  const pins = templatePins(relationOf(after).templates);
  if (before === undefined || before.operations.reconcile?.number !== after.operations.reconcile?.number) return pins;
  const known = templatePins(relationOf(before).templates);
  return pins.filter(
    (pin) => !known.some(({ source, revision }) => source === pin.source && revision === pin.revision),
  );
}

export function syncOwner(row: OwnerRow): Owner {
  return { namespace: row.namespace, kind: row.type, name: row.name };
}

/** Names of the Sources of the same namespace that the owner's templates name. */
export function sourcesOf(row: OwnerRow): ReadonlySet<string> {
  return new Set(relationOf(row).templates.flatMap(templateSources));
}

function putRow(before: WrittenRow | undefined, after: WrittenRow): Write {
  return { put: after, when: before === undefined ? "absent" : { version: before.version } };
}

function directoryRow(key: RowKey): DirectoryRow {
  return { ...key, type: "Directory", schema: rowSchema, version: 1 };
}
