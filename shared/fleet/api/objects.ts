/** Objects as the API returns them and the CLI shows them: Kubernetes' shape around Starling's rows. */
import { defined } from "#shared/base/defined.ts";
import { externalIdOf } from "#shared/base/external-id.ts";
import { compareText } from "#shared/base/text-order.ts";
import type { RolloutPhase } from "#shared/fleet/api/rollout-phase.ts";
import { discoveryIdentity } from "#shared/fleet/discovery/discovery-identity.ts";
import { type EffectiveValue, valueOrigins } from "#shared/fleet/effective-values.ts";
import type { ClusterSpec } from "#shared/fleet/kinds/cluster.ts";
import type { ClusterDiscoverySpec } from "#shared/fleet/kinds/cluster-discovery.ts";
import { type SelectableCluster, selects } from "#shared/fleet/kinds/cluster-selection.ts";
import type { ClusterValuesSpec } from "#shared/fleet/kinds/cluster-values.ts";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import type { ReceiverSpec } from "#shared/fleet/kinds/receiver.ts";
import type { SourceSpec } from "#shared/fleet/kinds/source.ts";
import type { SyncGroupSpec } from "#shared/fleet/kinds/sync-group.ts";
import type { SyncSpec } from "#shared/fleet/kinds/sync-template.ts";
import type { WindowSpec } from "#shared/fleet/kinds/window.ts";
import { receiverId, receiverPath } from "#shared/fleet/receiver-id.ts";
import { clusterLabels, fleetRow, specOf } from "#shared/fleet/rows/cluster-entry.ts";
import { isCordoning } from "#shared/fleet/rows/cordons-row.ts";
import type { DeliveriesRow, LastDelivery, LastRefusal } from "#shared/fleet/rows/deliveries-row.ts";
import type { DiscoveryRow, DiscoveryStatus } from "#shared/fleet/rows/discovery-rows.ts";
import type { EventRow } from "#shared/fleet/rows/event-row.ts";
import type { Freeze } from "#shared/fleet/rows/freezes-row.ts";
import { type Owner, syncName } from "#shared/fleet/rows/keys.ts";
import type {
  Artifact,
  ClusterRow,
  ClusterStatus,
  ClusterValuesRow,
  Condition,
  Cordoning,
  Discovered,
  ObjectRow,
  Operations,
  OwnerRow,
  OwnerStatus,
  ReceiverRow,
  SourceRow,
  SourceStatus,
  SyncGroupRow,
  UserSyncRow,
  WindowRow,
} from "#shared/fleet/rows/object-rows.ts";
import type { PinFailure } from "#shared/fleet/rows/pin-row.ts";
import type {
  RolloutRow,
  StageRunPhase,
  StageRunRow,
  TargetState,
  Transition,
} from "#shared/fleet/rows/rollout-rows.ts";
import type { Row } from "#shared/fleet/rows/row.ts";
import {
  type Assigned,
  holdOf,
  type Observed,
  type Paused,
  type PruneAct,
  type SyncRow,
} from "#shared/fleet/rows/sync-row.ts";
import { clustersOf } from "#shared/fleet/rows/windows-row.ts";
import { pausedConditions } from "#shared/fleet/sync/conditions.ts";
import { type OutOfSync, syncState } from "#shared/fleet/sync/sync-state.ts";
import { countTargets, type TargetCounts } from "#shared/fleet/sync/tally.ts";
import { isOpen, nextClosing, nextOpening } from "#shared/fleet/windows/calendar.ts";

export interface ObjectMeta {
  readonly name: string;
  readonly namespace?: string;
  readonly uid: string;
  readonly generation?: number;
  /** The row's version: it grows with every write of any half. */
  readonly resourceVersion: string;
  readonly creationTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface ApiObject<Kind extends string, Spec, Status> {
  readonly apiVersion: typeof ourApiVersion;
  readonly kind: Kind;
  readonly metadata: ObjectMeta;
  readonly spec: Spec;
  readonly operations?: Operations;
  readonly status: Status;
}

/** A template that stays at a revision of a Source. */
export interface PinnedRevisionItem {
  /** As the template names it. */
  readonly revision: string;
  readonly owner: { readonly kind: Owner["kind"]; readonly name: string };
  readonly template: string;
  /** The artifact of the revision, once it was found. */
  readonly found?: Pick<Artifact, "revision" | "digest">;
  readonly failure?: PinFailure;
}

/** With `?pins=true`, an answer about one Source also has the templates that stay at a revision of it. */
export type SourceObject = ApiObject<
  "Source",
  SourceSpec,
  SourceStatus & { readonly pins?: readonly PinnedRevisionItem[] }
>;
export type ReceiverObject = ApiObject<
  "Receiver",
  ReceiverSpec,
  {
    /** Where senders deliver; only its path where the address of the API is not known. */
    readonly url: string;
    /** Names of the Sources that it lists and that exist. */
    readonly sources: readonly string[];
    /** Absent when no sender was believed within 30 days. */
    readonly lastDelivery?: LastDelivery;
    /** Anybody can cause one. */
    readonly lastRefusal?: LastRefusal;
    readonly conditions: readonly Condition[];
  }
>;
export type ClusterObject = ApiObject<
  "Cluster",
  ClusterSpec,
  Omit<ClusterStatus, "address" | "blobsAt" | "renewedAt"> & {
    readonly syncs?: TargetCounts;
    /** External id with which its role is assumed, for the role's trust policy. */
    readonly externalId?: string;
    /** The freeze that covers it now: nothing is written to it. */
    readonly frozen?: FrozenBy;
    /** The cordon in force: nothing new is assigned to it. */
    readonly cordoned?: Cordoning;
    /** The facts that its ClusterDiscovery found. */
    readonly discovered?: Discovered;
    /** The effective labels, when not all of them are written in `metadata`. */
    readonly labels?: Readonly<Record<string, string>>;
    /** The effective values by name, each with its origin. */
    readonly values?: Readonly<Record<string, EffectiveValue>>;
  }
>;
export type ClusterValuesObject = ApiObject<
  "ClusterValues",
  ClusterValuesSpec,
  {
    /** Number of registered clusters that it selects. */
    readonly clusters?: number;
    readonly conditions: readonly Condition[];
  }
>;
export type WindowObject = ApiObject<
  "Window",
  WindowSpec,
  {
    /** Number of registered clusters that it selects; a list that counts none leaves it out. */
    readonly clusters?: number;
    /** Whether it alone lets changes start now: other Windows of a cluster count as well. */
    readonly open: boolean;
    /** When it opens next; absent while it is open, and when it never opens again. */
    readonly nextOpening?: string;
    /** When it closes next; absent while it is closed, and when it stays open. */
    readonly nextClosing?: string;
    readonly conditions: readonly Condition[];
  }
>;
export type DiscoveryObject = ApiObject<
  "ClusterDiscovery",
  ClusterDiscoverySpec,
  Omit<DiscoveryStatus, "check" | "resume"> & {
    /** External id with which its role is assumed, for the role's trust policy. */
    readonly externalId: string;
  }
>;
export type SyncGroupObject = ApiObject<"SyncGroup", SyncGroupSpec, OwnerStatus>;

/** A freeze: by whom, why, until when, and the name to thaw. */
export type FrozenBy = Pick<Freeze, "name" | "by" | "reason" | "until">;

/** A Sync on its cluster; `group` and `template` name its origin, and are absent when a user wrote it. */
export interface SyncStatus {
  readonly group?: string;
  readonly template?: string;
  /** One state, of `syncState`. */
  readonly state: string;
  /** Present when the Sync is ready with its assignment, but something newer is desired and not assigned. */
  readonly outOfSync?: OutOfSync;
  readonly desired?: Omit<Assigned, "apply">;
  readonly observed?: Omit<Observed, "conditions" | "fence" | "handledPrune">;
  readonly conditions: readonly Condition[];
  /** The planner ended the newest attempt. */
  readonly paused?: Paused;
  /** The newest request to prune foreign members, and whether it was carried out. */
  readonly prune?: PruneAct & { readonly handled: boolean };
  /** The freeze that keeps its worker from a write. */
  readonly frozen?: FrozenBy & { readonly since: string };
  /** The planner's status of a Sync that a user wrote. */
  readonly plan?: OwnerStatus;
}
export type SyncObject = ApiObject<"Sync", SyncSpec, SyncStatus>;

/** The plan of a rollout, when it was created, and what it replaced. */
export interface RolloutSpec
  extends Pick<RolloutRow, "trigger" | "plan" | "skipped" | "fromRevision" | "rollback" | "takesBack" | "asked"> {
  readonly owner: Owner;
  readonly number: number;
  readonly revision: string;
}

/** A rollout in one stage: its stage run, or an estimate from the present members when it has not reached the stage. */
export interface RolloutStage extends Pick<StageRunRow, "size" | "counts"> {
  readonly name: string;
  /** `Waiting`: it has not reached the stage; `size` and `counts` are about the present members. */
  readonly phase: StageRunPhase | "Waiting";
  /** Number of its snapshot among all snapshots of the owner. */
  readonly snapshot?: number;
  readonly reason?: string;
  readonly message?: string;
  readonly preexistingFailures?: number;
  readonly startedAt?: string;
  readonly endedAt?: string;
  readonly supersededBy?: number;
}

/** The course of one rollout, as its stage runs recorded it. */
export interface RolloutStatus {
  readonly phase: RolloutPhase;
  readonly reason: string;
  readonly message: string;
  /** Sum of its stages. */
  readonly size: number;
  readonly stages: readonly RolloutStage[];
  readonly endedAt?: string;
  readonly supersededBy?: number;
  /** The last failures of each stage. */
  readonly failures: readonly (StageRunRow["failures"][number] & { readonly stage: string })[];
  readonly transitions: readonly (Transition & { readonly stage: string })[];
}
export type RolloutObject = ApiObject<"Rollout", RolloutSpec, RolloutStatus>;

/** One cluster in one stage run. */
export interface TargetItem {
  readonly cluster: string;
  readonly order: number;
  readonly stage: string;
  /** `Unreadable`: a newer version of Starling wrote the row. */
  readonly state: TargetState | "Unreadable";
  readonly reason: string;
  readonly revision?: string;
  readonly assignedAt?: string;
  readonly endedAt?: string;
  readonly preexisting?: true;
  /** Its worker tries again; the reason is the last error. */
  readonly retrying?: true;
  /** The Sync that the reason is about, when one was assigned: the first that is not ready. */
  readonly sync?: string;
  /** Present when the cluster is unreachable because its whole zone is. */
  readonly zone?: ZoneProblem;
}

export interface ZoneProblem {
  readonly name: string;
  /** - `ZoneDown`: no worker of the zone runs; `ZoneSilent`: its workers run, and none of its clusters answers. */
  readonly problem: "ZoneDown" | "ZoneSilent";
  /** Absent when no worker of the zone has ever run. */
  readonly since?: string;
}

/** A Sync, or an entry that stands for one. */
interface CountedSync {
  readonly metadata: Pick<ObjectMeta, "name" | "namespace">;
  readonly status: { readonly state: string; readonly observed?: Pick<Observed, "at" | "phase"> };
}

export type EventItem = Omit<EventRow, keyof Row>;

/** The object that an event is about, in lists of several objects' events. */
export interface EventAbout {
  readonly about: Owner;
}

/** Events of several owners, and the number of owners that were read. */
export interface EventList extends ApiList<EventItem & EventAbout> {
  readonly owners: { readonly known: number; readonly asked: number };
}

export interface ApiList<Item> {
  readonly apiVersion: typeof ourApiVersion;
  readonly kind: `${string}List`;
  readonly metadata: { readonly continue?: string };
  readonly items: readonly Item[];
}

export type AnyObject =
  | SourceObject
  | ReceiverObject
  | DiscoveryObject
  | ClusterObject
  | ClusterValuesObject
  | WindowObject
  | SyncGroupObject
  | SyncObject
  | RolloutObject;

export function sourceObject(row: SourceRow): SourceObject {
  return { ...head("Source", row), spec: row.spec, ...operationsOf(row), status: row.status };
}

/** @param seen.origin - of the API, as the caller reaches it. */
export function receiverObject(
  row: ReceiverRow,
  {
    origin = "",
    sources,
    deliveries,
  }: {
    readonly origin?: string | undefined;
    readonly sources: readonly { readonly name: string }[];
    readonly deliveries?: DeliveriesRow | undefined;
  },
): ReceiverObject {
  const url = `${origin}${receiverPath(receiverId(row))}`;
  const names = sources.map(({ name }) => name).sort(compareText);
  return {
    ...head("Receiver", row),
    spec: row.spec,
    ...operationsOf(row),
    status: {
      ...row.status,
      url,
      sources: names,
      ...defined({ lastDelivery: deliveries?.accepted, lastRefusal: deliveries?.refused }),
    },
  };
}

export function discoveryObject(row: DiscoveryRow, installation: string): DiscoveryObject {
  const { resume: _resume, ...known } = row.status;
  const status = { ...known, externalId: discoveryIdentity(installation, row.name) };
  return { ...head("ClusterDiscovery", row), spec: row.spec, ...operationsOf(row), status };
}

/** @param fleet - the registered clusters; without it, the number of selected clusters is left out. */
export function clusterValuesObject(row: ClusterValuesRow, fleet?: readonly SelectableCluster[]): ClusterValuesObject {
  const clusters = fleet?.filter((cluster) => selects(row.spec.clusters, cluster)).length;
  const status = { ...row.status, ...defined({ clusters }) };
  return { ...head("ClusterValues", row), spec: row.spec, ...operationsOf(row), status };
}

/** @param fleet - the registered clusters; without it, the number of selected clusters is left out. */
export function windowObject(row: WindowRow, fleet: readonly SelectableCluster[] | undefined, now: Date): WindowObject {
  const { spec } = row;
  const open = isOpen(spec, now);
  const status = {
    ...row.status,
    open,
    ...defined({
      clusters: fleet?.filter((cluster) => selects(clustersOf(spec), cluster)).length,
      nextOpening: open ? undefined : nextOpening(spec, now)?.toISOString(),
      nextClosing: open ? nextClosing(spec, now)?.toISOString() : undefined,
    }),
  };
  return { ...head("Window", row), spec, ...operationsOf(row), status };
}

interface SeenOfCluster {
  readonly syncs?: readonly CountedSync[];
  readonly freeze?: Freeze | undefined;
  /** Without it, cordons are left out. */
  readonly now?: Date;
  /** Every ClusterValues, see `inOrder`; without it, the effective values are left out. */
  readonly values?: readonly ClusterValuesRow[] | undefined;
}

export function clusterObject(row: ClusterRow, installation: string, seen: SeenOfCluster = {}): ClusterObject {
  const { syncs = [], freeze, now } = seen;
  const { cordoned } = row.operations;
  const isCordoned = cordoned !== undefined && now !== undefined && isCordoning(cordoned, now);
  const frozen = freeze === undefined ? {} : { frozen: frozenBy(freeze) };
  const access = specOf(row).access?.role === undefined ? {} : { externalId: externalIdOf(installation, row.name) };
  const { discovered } = row;
  const isPlain = discovered === undefined && row.spec.kubeVersion === undefined;
  const found = { ...defined({ discovered }), ...(isPlain ? {} : { labels: clusterLabels(row) }) };
  const { address: _address, blobsAt: _blobsAt, renewedAt: _renewedAt, ...known } = row.status;
  const values = seen.values === undefined ? {} : valuesOf(row, seen.values);
  const status = {
    ...known,
    ...access,
    ...frozen,
    ...(isCordoned ? { cordoned } : {}),
    ...found,
    ...values,
    ...lastSeen(row, syncs),
    syncs: countTargets(
      syncs.map(({ metadata: { namespace, name }, status: { state } }) => ({ state, name: `${namespace}/${name}` })),
    ),
  };
  return { ...head("Cluster", row), spec: row.spec, ...operationsOf(row), status };
}

function valuesOf(row: ClusterRow, ordered: readonly ClusterValuesRow[]): Pick<ClusterObject["status"], "values"> {
  const values = valueOrigins(fleetRow(row), ordered, row.discovered?.by);
  return Object.keys(values).length === 0 ? {} : { values };
}

/** Checks that find nothing new are not recorded in the Cluster's row. */
function lastSeen({ status }: ClusterRow, syncs: readonly CountedSync[]): Pick<ClusterRow["status"], "lastSeenAt"> {
  const answers = status.conditions.some((condition) => condition.type === "Reachable" && condition.status === "True");
  const checks = syncs.flatMap(({ status: { observed } }) => (observed?.phase === "Ready" ? [observed.at] : []));
  const last = [...checks, ...(status.lastSeenAt === undefined ? [] : [status.lastSeenAt])].sort().at(-1);
  return answers && last !== undefined ? { lastSeenAt: last } : {};
}

function frozenBy({ name, by, reason, until }: FrozenBy): FrozenBy {
  return { name, by, reason, ...defined({ until }) };
}

export function syncGroupObject(row: SyncGroupRow): SyncGroupObject {
  return { ...head("SyncGroup", row), spec: row.spec, ...operationsOf(row), status: row.status };
}

/** A Sync that a user wrote, with its cluster's report once the planner has assigned it. */
export function userSyncObject(row: UserSyncRow, onCluster: SyncRow | undefined, behind?: OutOfSync): SyncObject {
  const plan = row.status;
  // A forgotten Sync is on no cluster, so only the planner's status remains.
  const there = onCluster?.desired.action === "orphan" ? undefined : onCluster;
  const status =
    there === undefined
      ? { state: syncState(undefined, { plan }), conditions: plan.conditions }
      : statusOf(there, { behind, plan });
  return { ...head("Sync", row), spec: row.spec, ...operationsOf(row), status: { ...status, plan } };
}

/** A Sync on a cluster that a group wrote; `owner` is the row of the group, when it still exists. */
export function groupSyncObject(row: SyncRow, group: OwnerRow | undefined, behind?: OutOfSync): SyncObject {
  const template =
    group?.type === "SyncGroup"
      ? group.spec.templates.find((candidate) => syncName(row.owner, candidate.name) === row.name)
      : undefined;
  const templateName = row.name.slice(row.owner.name.length + 1);
  return {
    apiVersion: ourApiVersion,
    kind: "Sync",
    metadata: { name: row.name, namespace: row.namespace, uid: row.uid, resourceVersion: String(row.version) },
    spec: {
      cluster: row.cluster,
      source: template?.source ?? "",
      path: template?.path ?? "",
      ...defined({ revision: template?.revision }),
      ...(template?.render === undefined ? {} : { render: template.render }),
      apply: row.desired.apply,
    },
    status: { group: row.owner.name, template: templateName, ...statusOf(row, { behind }) },
  };
}

export function isDone(state: TargetItem["state"]): boolean {
  return state === "Succeeded" || state === "Unchanged";
}

/** One line of a function's log. */
export interface LogItem {
  readonly id: string;
  readonly at: string;
  readonly function: string;
  /** `INFO`, `WARN`, `ERROR` */
  readonly level: string;
  readonly message: string;
  readonly correlationId?: string;
  /** Further fields: what the line is about, and what was found. */
  readonly fields: Readonly<Record<string, unknown>>;
}

export function listOf<Item>(kind: string, items: readonly Item[], next: string | undefined): ApiList<Item> {
  return {
    apiVersion: ourApiVersion,
    kind: `${kind}List`,
    metadata: next === undefined ? {} : { continue: next },
    items,
  };
}

function statusOf(row: SyncRow, about: Parameters<typeof syncState>[1]): SyncStatus {
  const { apply: _apply, token: _token, earlier: _earlier, anew: _anew, ...desired } = row.desired;
  const { behind } = about;
  const held = holdOf(row);
  const said = {
    state: syncState(row, about),
    desired,
    ...defined({ outOfSync: behind, paused: row.paused }),
    ...(held === undefined ? {} : { frozen: { ...frozenBy(held), since: held.since } }),
  };
  if (row.observed === undefined) return { ...said, conditions: [] };
  const { conditions, fence: _fence, handledPrune, ...observed } = row.observed;
  const asked = row.operations?.prune;
  const prune = asked === undefined ? {} : { prune: { ...asked, handled: handledPrune === asked.number } };
  return { ...said, observed, conditions: pausedConditions(row, conditions), ...prune };
}

function head<Kind extends string>(
  kind: Kind,
  row: ObjectRow<Kind, unknown, unknown> & { readonly namespace?: string },
) {
  return {
    apiVersion: ourApiVersion,
    kind,
    metadata: {
      name: row.name,
      ...defined({ namespace: row.namespace }),
      uid: row.uid,
      generation: row.generation,
      resourceVersion: String(row.version),
      creationTimestamp: row.createdAt,
      ...(Object.keys(row.labels).length === 0 ? {} : { labels: row.labels }),
      ...(Object.keys(row.annotations).length === 0 ? {} : { annotations: row.annotations }),
    },
  } as const;
}

function operationsOf(row: { readonly operations: Operations }): { operations?: Operations } {
  return Object.keys(row.operations).length === 0 ? {} : { operations: row.operations };
}
