/**
 * The keys of the table, in the order of docs/architecture.md, and the ranges that are read of it. Only this module
 * makes keys and reads their parts.
 */
import { sha256 } from "#shared/base/digest.ts";
import { keyForm, required, textForm } from "#shared/fleet/rows/key-form.ts";
import type { RowKey, RowKeyOf, RowRange } from "#shared/fleet/rows/row.ts";

export interface Owner {
  readonly namespace: string;
  readonly kind: "SyncGroup" | "Sync";
  readonly name: string;
}

interface Named {
  readonly namespace: string;
  readonly name: string;
}

/** The same as in `StageRunRow`. */
interface StageRunRef {
  readonly rollout: number;
  readonly stage: string;
  readonly snapshot: number;
}

/** Catch-ups that wait for a slot, that failed, and that did not answer in their slot. */
export const catchUpStates = ["waiting", "failed", "away"] as const;
export type CatchUpState = (typeof catchUpStates)[number];

interface About extends Named {
  readonly kind: string;
}

/** Kinds with a namespace. */
type ObjectKind = "Source" | "Receiver" | "SyncGroup" | "Sync";

interface ObjectForm<Kind extends ObjectKind> {
  readonly key: (parts: Named) => RowKeyOf<Kind>;
  readonly parse: (key: RowKey) => Named | undefined;
  readonly range: (parts: Pick<Named, "namespace">) => RowRange<Kind>;
}

const forms = {
  Source: keyForm("Source", "NS#:namespace#Source", ":name"),
  Receiver: keyForm("Receiver", "NS#:namespace#Receiver", ":name"),
  SyncGroup: keyForm("SyncGroup", "NS#:namespace#SyncGroup", ":name"),
  Sync: keyForm("Sync", "NS#:namespace#Sync", ":name"),
  cluster: keyForm("Cluster", "CL#:cluster", "META"),
  sync: keyForm("SyncOnCluster", "CL#:cluster", "SYNC#:namespace#:name"),
  lease: keyForm("Lease", "CL#:cluster", "LEASE"),
  check: keyForm("Check", "CHECK#:cluster", "META"),
  freezeState: keyForm("Freezes", "FREEZES", "META"),
  fleet: keyForm("Fleet", "FLEET", ":cluster"),
  discovery: keyForm("ClusterDiscovery", "DISCOVERIES", ":name"),
  found: keyForm("Found", "FOUND", ":arn"),
  clusterValues: keyForm("ClusterValues", "CLUSTERVALUES", ":name"),
  window: keyForm("Window", "WINDOWS", ":name"),
  windowState: keyForm("Windows", "WINDOWSTATE", "META"),
  cordonState: keyForm("Cordons", "CORDONSTATE", "META"),
  owner: keyForm("Directory", "OWNERS", ":namespace#:kind#:name"),
  sourceEntry: keyForm("Directory", "SOURCES", ":namespace#:name"),
  receiverEntry: keyForm("Directory", "RECEIVERS", ":id#:namespace#:name"),
  deliveries: keyForm("Deliveries", "DELIVERIES#:id", "META"),
  uses: keyForm("Directory", "USES#:namespace#:source", ":kind#:name"),
  repository: keyForm("Directory", "REPO#:url", ":namespace#:name"),
  fleetVersion: keyForm("FleetVersion", "FLEETVERSION", ":part"),
  tick: keyForm("Tick", "TICK", "META"),
  zone: keyForm("Zone", "ZONE#:zone", "META"),
  zoneCheck: keyForm("ZoneCheck", "ZONE#:zone", "CHECK"),
  hostLimit: keyForm("HostLimit", "LIMIT#:host", ":secret"),
  rolloutState: keyForm("RolloutState", "ROLL#:namespace#:kind#:name", "STATE"),
  rollout: keyForm("Rollout", "ROLL#:namespace#:kind#:name", "ROLLOUT#:number"),
  stageRun: keyForm("StageRun", "ROLL#:namespace#:kind#:name", "STAGERUN#:number#:stage#:snapshot"),
  alarms: keyForm("Alarms", "ROLL#:namespace#:kind#:name", "ALARMS#:number#:stage#:snapshot"),
  slot: keyForm("Slot", "ROLL#:namespace#:kind#:name", "SLOT#:cluster"),
  target: keyForm("Target", "ROLL#:namespace#:kind#:name", "TARGET#:number#:stage#:snapshot#:cluster"),
  catchUp: keyForm("CatchUp", "ROLL#:namespace#:kind#:name", "CATCHUP#:state#:cluster"),
  rendering: keyForm("Rendering", "REND#:input", "META"),
  folderUse: keyForm("FolderUse", "REND#:folder", "USE"),
  revision: keyForm("Revision", "REV#:namespace#:name", ":at#:digest"),
  pin: keyForm("Pin", "PIN#:namespace#:name", ":revision"),
  event: keyForm("Event", "EVT#:namespace#:kind#:name", ":at#:id"),
} as const;

const formsByHead = Map.groupBy(Object.values(forms), ({ partition }) => partition.split("#")[0]);

/** The type of the row with this key; `undefined` when it is unknown. Every row that is read is asked. */
export function rowTypeOf(key: RowKey): string | undefined {
  const [pk, sk] = [key.pk.split("#"), key.sk.split("#")];
  return formsByHead.get(pk[0])?.find((form) => form.fits(pk, sk))?.type;
}

/**
 * Whether the names in a row below a cluster are those of its key. Roles of zones may write these partitions, each for its own
 * clusters, and the names decide which cluster is reached, by which external id.
 */
export function isNamedByKey(key: RowKey, row: object): boolean {
  const cluster = forms.cluster.parse(key);
  const names = cluster === undefined ? forms.sync.parse(key) : { name: cluster.cluster };
  return Object.entries(names ?? {}).every(([field, name]) =>
    [undefined, name].includes(row[field as keyof typeof row]),
  );
}

const objects: { readonly [Kind in ObjectKind]: ObjectForm<Kind> } = forms;

/** The partitions that policies grant; the table has no others. */
export const partitions = {
  sources: forms.Source.partition,
  receivers: forms.Receiver.partition,
  syncGroups: forms.SyncGroup.partition,
  syncs: forms.Sync.partition,
  clusters: forms.cluster.partition,
  checks: forms.check.partition,
  freezeState: forms.freezeState.partition,
  fleet: forms.fleet.partition,
  fleetVersion: forms.fleetVersion.partition,
  tick: forms.tick.partition,
  zones: forms.zone.partition,
  hostLimits: forms.hostLimit.partition,
  discoveries: forms.discovery.partition,
  found: forms.found.partition,
  clusterValues: forms.clusterValues.partition,
  windows: forms.window.partition,
  windowState: forms.windowState.partition,
  cordonState: forms.cordonState.partition,
  ownerEntries: forms.owner.partition,
  sourceEntries: forms.sourceEntry.partition,
  receiverEntries: forms.receiverEntry.partition,
  deliveries: forms.deliveries.partition,
  uses: forms.uses.partition,
  repositories: forms.repository.partition,
  rollouts: forms.rolloutState.partition,
  renderings: forms.rendering.partition,
  revisions: forms.revision.partition,
  pins: forms.pin.partition,
  events: forms.event.partition,
} as const;
export type Partition =
  | (typeof partitions)[keyof typeof partitions]
  | ReturnType<typeof partitionOfZone>
  | ReturnType<typeof partitionsOfClusters>["clusters" | "checks"];

/** The partition of one zone: its workers write no row of another zone. */
export function partitionOfZone(zone: string): `ZONE#${string}` {
  return forms.zone.key({ zone }).pk as `ZONE#${string}`;
}

/** The partitions of the clusters whose names fit a pattern. */
export function partitionsOfClusters(pattern: string) {
  return {
    clusters: forms.cluster.key({ cluster: pattern }).pk as `CL#${string}`,
    checks: forms.check.key({ cluster: pattern }).pk as `CHECK#${string}`,
  };
}

export const keys = {
  object: Object.assign(
    <Kind extends ObjectKind>(namespace: string, kind: Kind, name: string) => objects[kind].key({ namespace, name }),
    decoder((key) => {
      for (const kind of ["Source", "Receiver", "SyncGroup", "Sync"] as const) {
        const parts = objects[kind].parse(key);
        if (parts !== undefined) return { ...parts, kind };
      }
      return undefined;
    }),
  ),
  cluster: Object.assign((cluster: string) => forms.cluster.key({ cluster }), decoder(forms.cluster.parse)),
  sync: Object.assign(
    (cluster: string, namespace: string, name: string) => forms.sync.key({ cluster, namespace, name }),
    decoder(forms.sync.parse),
  ),
  lease: Object.assign((cluster: string) => forms.lease.key({ cluster }), decoder(forms.lease.parse)),
  check: Object.assign((cluster: string) => forms.check.key({ cluster }), decoder(forms.check.parse)),
  freezeState: forms.freezeState.key({}),
  fleet: Object.assign((cluster: string) => forms.fleet.key({ cluster }), decoder(forms.fleet.parse)),
  discovery: Object.assign((name: string) => forms.discovery.key({ name }), decoder(forms.discovery.parse)),
  clusterValues: Object.assign((name: string) => forms.clusterValues.key({ name }), decoder(forms.clusterValues.parse)),
  window: Object.assign((name: string) => forms.window.key({ name }), decoder(forms.window.parse)),
  windowState: forms.windowState.key({}),
  cordonState: forms.cordonState.key({}),
  found: Object.assign((arn: string) => forms.found.key({ arn }), decoder(forms.found.parse)),
  owner: Object.assign(
    (owner: Owner) => forms.owner.key(owner),
    decoder((key) => ownerAmong(forms.owner.parse(key))),
  ),
  sourceEntry: Object.assign((source: Named) => forms.sourceEntry.key(source), decoder(forms.sourceEntry.parse)),
  /** Named by the id of its URL, so that a delivery finds it. */
  receiverEntry: Object.assign(
    (id: string, { namespace, name }: Named) => forms.receiverEntry.key({ id, namespace, name }),
    decoder(forms.receiverEntry.parse),
  ),
  /** The last deliveries to the URL of a Receiver. */
  deliveries: (id: string) => forms.deliveries.key({ id }),
  uses: Object.assign(
    (source: Named, { kind, name }: Owner) =>
      forms.uses.key({ namespace: source.namespace, source: source.name, kind, name }),
    decoder((key) => {
      const parts = forms.uses.parse(key);
      const owner = ownerAmong(parts);
      if (parts === undefined || owner === undefined) return undefined;
      return { source: { namespace: parts.namespace, name: parts.source }, owner };
    }),
  ),
  /** Beside the owners that use a Source: another one that includes it. */
  includes: Object.assign(
    (source: Named, including: string) =>
      forms.uses.key({ namespace: source.namespace, source: source.name, kind: "Source", name: including }),
    decoder((key) => {
      const parts = forms.uses.parse(key);
      if (parts?.kind !== "Source") return undefined;
      return { source: { namespace: parts.namespace, name: parts.source }, including: parts.name };
    }),
  ),
  repository: Object.assign(
    (url: string, { namespace, name }: Named) => forms.repository.key({ url, namespace, name }),
    decoder((key) => {
      const parts = forms.repository.parse(key);
      return parts && { url: parts.url, source: { namespace: parts.namespace, name: parts.name } };
    }),
  ),
  fleetVersion: (part: number) => forms.fleetVersion.key({ part: padded(part, 2) }),
  tick: forms.tick.key({}),
  zone: (zone: string) => forms.zone.key({ zone }),
  zoneCheck: (zone: string) => forms.zoneCheck.key({ zone }),
  /** One for each secret with which the host is asked; an ARN has colons and slashes, so that its hash stands for it. */
  hostLimit: (host: string, secret: string | undefined) =>
    forms.hostLimit.key({ host: sha256(host), secret: secret === undefined ? "anonymous" : sha256(secret) }),
  rolloutState: Object.assign(
    (owner: Owner) => forms.rolloutState.key(owner),
    decoder((key) => ownerAmong(forms.rolloutState.parse(key))),
  ),
  rollout: Object.assign(
    (owner: Owner, number: number) => forms.rollout.key({ ...owner, number: padded(number, 8) }),
    decoder((key) => {
      const parts = forms.rollout.parse(key);
      const [owner, number] = [ownerAmong(parts), wholeNumber(parts?.number)];
      return owner === undefined || number === undefined ? undefined : { owner, number };
    }),
  ),
  stageRun: Object.assign(
    (owner: Owner, stageRun: StageRunRef) => forms.stageRun.key({ ...owner, ...stageRunParts(stageRun) }),
    decoder((key) => {
      const parts = forms.stageRun.parse(key);
      const [owner, stageRun] = [ownerAmong(parts), stageRunAmong(parts)];
      return owner === undefined || stageRun === undefined ? undefined : { owner, stageRun };
    }),
  ),
  /** The facts about the alarms of a stage run. */
  alarms: (owner: Owner, stageRun: StageRunRef) => forms.alarms.key({ ...owner, ...stageRunParts(stageRun) }),
  slot: Object.assign(
    (owner: Owner, cluster: string) => forms.slot.key({ ...owner, cluster }),
    decoder((key) => {
      const parts = forms.slot.parse(key);
      const owner = ownerAmong(parts);
      return parts === undefined || owner === undefined ? undefined : { owner, cluster: parts.cluster };
    }),
  ),
  target: Object.assign(
    (owner: Owner, stageRun: StageRunRef, cluster: string) =>
      forms.target.key({ ...owner, ...stageRunParts(stageRun), cluster }),
    decoder((key) => {
      const parts = forms.target.parse(key);
      const [owner, stageRun] = [ownerAmong(parts), stageRunAmong(parts)];
      if (parts === undefined || owner === undefined || stageRun === undefined) return undefined;
      return { owner, stageRun, cluster: parts.cluster };
    }),
  ),
  catchUp: Object.assign(
    (owner: Owner, state: CatchUpState, cluster: string) => forms.catchUp.key({ ...owner, state, cluster }),
    decoder((key) => {
      const parts = forms.catchUp.parse(key);
      const owner = ownerAmong(parts);
      if (parts === undefined || owner === undefined) return undefined;
      return { owner, state: parts.state as CatchUpState, cluster: parts.cluster };
    }),
  ),
  /** Written for the newest Source that has an artifact with the folder. */
  folderUse: ({ namespace, name }: Named, path: string) =>
    forms.folderUse.key({ folder: sha256(`${namespace}/${name}/${path}`) }),
  rendering: Object.assign((input: string) => forms.rendering.key({ input }), decoder(forms.rendering.parse)),
  revision: Object.assign(
    ({ namespace, name }: Named, at: string, digest: string) => forms.revision.key({ namespace, name, at, digest }),
    decoder(forms.revision.parse),
  ),
  /** A Source at a revision that templates name. */
  pin: Object.assign(
    ({ namespace, name }: Named, revision: string) => forms.pin.key({ namespace, name, revision }),
    decoder(forms.pin.parse),
  ),
  event: Object.assign(
    ({ namespace, kind, name }: About, at: string, id: string) => forms.event.key({ namespace, kind, name, at, id }),
    decoder(forms.event.parse),
  ),
} as const;

export const ranges = {
  objects: <Kind extends ObjectKind>(namespace: string, kind: Kind) => objects[kind].range({ namespace }),
  /** Every row of a cluster. */
  cluster: (cluster: string): RowRange<"Cluster" | "SyncOnCluster" | "Lease"> => ({
    pk: forms.cluster.key({ cluster }).pk,
  }),
  /** Everything that is, or was, assigned to a cluster; only of one namespace, when given. */
  syncsOn: (cluster: string, namespace?: string) => forms.sync.range({ cluster, namespace }),
  fleet: forms.fleet.range({}),
  fleetVersions: forms.fleetVersion.range({}),
  discoveries: forms.discovery.range({}),
  found: forms.found.range({}),
  clusterValues: forms.clusterValues.range({}),
  windows: forms.window.range({}),
  owners: (namespace?: string) => forms.owner.range({ namespace }),
  sources: forms.sourceEntry.range({}),
  /** Every Receiver, or the one whose URL has the id. */
  receivers: (id?: string) => forms.receiverEntry.range({ id }),
  /** The owners that use a Source, and the Sources that include it. */
  uses: ({ namespace, name }: Named) => forms.uses.range({ namespace, source: name }),
  repository: (url: string) => forms.repository.range({ url }),
  /** The stage runs of a rollout, sorted by the stages' names. */
  stageRuns: (owner: Owner, number: number) => forms.stageRun.range({ ...owner, number: padded(number, 8) }),
  /** The stage runs of several rollouts, the oldest first. */
  stageRunsBetween: (owner: Owner, numbers: { readonly from: number; readonly to: number }): RowRange<"StageRun"> => {
    const { pk, prefix: from = "" } = ranges.stageRuns(owner, numbers.from);
    return { pk, between: [from, `${ranges.stageRuns(owner, numbers.to).prefix}\uffff`] };
  },
  /** The alarms of all stage runs of a rollout. */
  alarms: (owner: Owner, number: number) => forms.alarms.range({ ...owner, number: padded(number, 8) }),
  slots: (owner: Owner) => forms.slot.range(owner),
  /** Results of the targets of all stage runs of a rollout. */
  rolloutTargets: (owner: Owner, number: number) => forms.target.range({ ...owner, number: padded(number, 8) }),
  /** Results of the targets of a stage run, by cluster. */
  targets: (owner: Owner, stageRun: StageRunRef) => forms.target.range({ ...owner, ...stageRunParts(stageRun) }),
  catchUps: (owner: Owner, state: CatchUpState) => forms.catchUp.range({ ...owner, state }),
  /** Catch-ups that had a slot, and that failed or did not answer. */
  catchUpsTried: (owner: Owner): RowRange<"CatchUp"> => {
    const { pk, prefix: from = "" } = ranges.catchUps(owner, "away");
    return { pk, between: [from, `${ranges.catchUps(owner, "failed").prefix}\uffff`] };
  },
  revisions: ({ namespace, name }: Named) => forms.revision.range({ namespace, name }),
  pins: ({ namespace, name }: Named) => forms.pin.range({ namespace, name }),
  events: ({ namespace, kind, name }: About) => forms.event.range({ namespace, kind, name }),
} as const;

const statePk = textForm("S#:namespace#:kind#:name");
const stateSk = textForm(":state#:cluster#:sync");

/** One word for the phases of every attempt, because an index entry that moves costs two writes. */
const onTheWay: ReadonlySet<string> = new Set(["Assigned", "Rejected", "Applying", "Verifying"]);

/** The index of states: Syncs of an owner by state, cluster by cluster. */
export const stateIndex = {
  partition: statePk.pattern,
  pk: (owner: Owner) => statePk.text(owner),
  sk: (state: string, { cluster, name }: { readonly cluster: string; readonly name: string }) =>
    stateSk.text({ state: stateIndex.word(state), cluster, sync: name }),
  word: (state: string): string => (onTheWay.has(state) ? "Changing" : state),
  parse: stateSk.parse,
  /** Only Syncs in one state, when given. */
  range: (owner: Owner, state?: string) => ({
    index: "state" as const,
    pk: statePk.text(owner),
    ...(state === undefined ? {} : { prefix: stateSk.start({ state: stateIndex.word(state) }) }),
  }),
};

/** The cluster that a row is about. */
export function clusterOfKey(key: RowKey): string {
  const { fleet, sync, cluster, lease, slot, target, catchUp } = forms;
  const parts = [fleet, sync, cluster, lease, slot, target, catchUp].map((form) => form.parse(key));
  return required(
    parts.find((found) => found !== undefined),
    key,
  ).cluster;
}

/** The name of a Sync on a cluster: `<group>.<template>`, or the name of a Sync that a user wrote. */
export function syncName(owner: Owner, template: string): string {
  return owner.kind === "Sync" ? owner.name : `${owner.name}.${template}`;
}

/** The template of an owner's Sync, from the name that `syncName` made. */
export function templateOf(owner: Owner, sync: string): string {
  return owner.kind === "Sync" ? sync : sync.slice(owner.name.length + 1);
}

function decoder<Parts>(parse: (key: RowKey) => Parts | undefined) {
  return {
    /** @returns undefined for a key of another kind of row. */
    parse,
    /** For a row whose type is known. */
    read: (key: RowKey): Parts => required(parse(key), key),
  };
}

function ownerAmong(parts: About | undefined): Owner | undefined {
  if (parts?.kind !== "SyncGroup" && parts?.kind !== "Sync") return undefined;
  return { namespace: parts.namespace, kind: parts.kind, name: parts.name };
}

function stageRunParts({ rollout, stage, snapshot }: StageRunRef) {
  return { number: padded(rollout, 8), stage, snapshot: padded(snapshot, 4) };
}

function stageRunAmong(
  parts: { readonly number: string; readonly stage: string; readonly snapshot: string } | undefined,
): StageRunRef | undefined {
  const [rollout, snapshot] = [wholeNumber(parts?.number), wholeNumber(parts?.snapshot)];
  return parts === undefined || rollout === undefined || snapshot === undefined
    ? undefined
    : { rollout, stage: parts.stage, snapshot };
}

/** Pads with zeros, so that the order of texts is the order of numbers. */
function padded(value: number, digits: number): string {
  return String(value).padStart(digits, "0");
}

function wholeNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined;
}
