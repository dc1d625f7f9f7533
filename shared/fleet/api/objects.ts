/** Objects as the API gives them and the CLI shows them: Kubernetes' shape around Starling's rows. */
import { defined } from "#shared/base/defined.ts";
import { externalIdOf } from "#shared/base/external-id.ts";
import type { RolloutPhase } from "#shared/fleet/api/rollout-phase.ts";
import { discoveryIdentity } from "#shared/fleet/discovery/discovery-identity.ts";
import { type EffectiveValue, valueOrigins } from "#shared/fleet/effective-values.ts";
import type { ClusterSpec } from "#shared/fleet/kinds/cluster.ts";
import type { ClusterDiscoverySpec } from "#shared/fleet/kinds/cluster-discovery.ts";
import { type SelectableCluster, selects } from "#shared/fleet/kinds/cluster-selection.ts";
import type { ClusterValuesSpec } from "#shared/fleet/kinds/cluster-values.ts";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import type { SourceSpec } from "#shared/fleet/kinds/source.ts";
import type { SyncGroupSpec } from "#shared/fleet/kinds/sync-group.ts";
import type { SyncSpec } from "#shared/fleet/kinds/sync-template.ts";
import { clusterLabels, fleetRow, specOf } from "#shared/fleet/rows/cluster-entry.ts";
import type { DiscoveryRow, DiscoveryStatus } from "#shared/fleet/rows/discovery-rows.ts";
import type { EventRow } from "#shared/fleet/rows/event-row.ts";
import type { Freeze } from "#shared/fleet/rows/freezes-row.ts";
import { type Owner, syncName } from "#shared/fleet/rows/keys.ts";
import type {
  ClusterRow,
  ClusterStatus,
  ClusterValuesRow,
  Condition,
  Discovered,
  ObjectRow,
  Operations,
  OwnerRow,
  OwnerStatus,
  SourceRow,
  SourceStatus,
  SyncGroupRow,
  UserSyncRow,
} from "#shared/fleet/rows/object-rows.ts";
import type {
  RolloutRow,
  StageRunPhase,
  StageRunRow,
  TargetState,
  Transition,
} from "#shared/fleet/rows/rollout-rows.ts";
import type { Row } from "#shared/fleet/rows/row.ts";
import { type Assigned, holdOf, type Observed, type PruneAct, type SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { type OutOfSync, syncState } from "#shared/fleet/sync/sync-state.ts";
import { countTargets, type TargetCounts } from "#shared/fleet/sync/tally.ts";

export interface ObjectMeta {
  readonly name: string;
  readonly namespace?: string;
  readonly uid: string;
  readonly generation?: number;
  /** The row's version: grows with every write of any half. */
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

export type SourceObject = ApiObject<"Source", SourceSpec, SourceStatus>;
export type ClusterObject = ApiObject<
  "Cluster",
  ClusterSpec,
  Omit<ClusterStatus, "address" | "blobsAt" | "renewedAt"> & {
    readonly syncs?: TargetCounts;
    /** What its role is assumed with, for the role's trust policy. */
    readonly externalId?: string;
    /** That holds it now: nothing is written to it. */
    readonly frozen?: FrozenBy;
    /** What its ClusterDiscovery says of it. */
    readonly discovered?: Discovered;
    /** Those that count, where not all of them are written in `metadata`. */
    readonly labels?: Readonly<Record<string, string>>;
    /** Those that count, by name, each with who set it. */
    readonly values?: Readonly<Record<string, EffectiveValue>>;
  }
>;
export type ClusterValuesObject = ApiObject<
  "ClusterValues",
  ClusterValuesSpec,
  {
    /** How many registered clusters it selects. */
    readonly clusters?: number;
    readonly conditions: readonly Condition[];
  }
>;
export type DiscoveryObject = ApiObject<
  "ClusterDiscovery",
  ClusterDiscoverySpec,
  Omit<DiscoveryStatus, "check" | "resume"> & {
    /** What its role is assumed with, for the role's trust policy. */
    readonly externalId: string;
  }
>;
export type SyncGroupObject = ApiObject<"SyncGroup", SyncGroupSpec, OwnerStatus>;

/** What is frozen says by whom, why, until when, and the name to thaw. */
export type FrozenBy = Pick<Freeze, "name" | "by" | "reason" | "until">;

/** A Sync on its cluster; `group` and `template` say who wrote it, absent when a user did. */
export interface SyncStatus {
  readonly group?: string;
  readonly template?: string;
  /** One word, of `syncState`. */
  readonly state: string;
  /** What is wanted instead of what was assigned, when the Sync is ready with the latter. */
  readonly outOfSync?: OutOfSync;
  readonly desired?: Omit<Assigned, "apply">;
  readonly observed?: Omit<Observed, "conditions" | "fence" | "handledPrune">;
  readonly conditions: readonly Condition[];
  /** The newest request to prune foreign members, and whether it was carried out. */
  readonly prune?: PruneAct & { readonly handled: boolean };
  /** That keeps its worker from writing what the cluster lacks. */
  readonly frozen?: FrozenBy & { readonly since: string };
  /** What the planner says about a Sync that a user wrote. */
  readonly plan?: OwnerStatus;
}
export type SyncObject = ApiObject<"Sync", SyncSpec, SyncStatus>;

/** What a content takes its clusters to, since when it is known, and what it took the place of. */
export interface RolloutSpec extends Pick<RolloutRow, "trigger" | "plan" | "skipped" | "fromRevision"> {
  readonly owner: Owner;
  readonly number: number;
  readonly revision: string;
}

/** A content in one stage: its leg, or what it would be of now where it has not come to yet. */
export interface RolloutStage extends Pick<StageRunRow, "size" | "counts"> {
  readonly name: string;
  /** `Waiting`: it is still to come here; `size` and `counts` are of the clusters that are members now. */
  readonly phase: StageRunPhase | "Waiting";
  /** Its number among all legs of the subject: sealed anew, it has another one. */
  readonly snapshot?: number;
  readonly reason?: string;
  readonly message?: string;
  readonly preexistingFailures?: number;
  readonly startedAt?: string;
  readonly endedAt?: string;
  readonly supersededBy?: number;
}

/** The way of one content, as its legs have recorded it. */
export interface RolloutStatus {
  readonly phase: RolloutPhase;
  readonly reason: string;
  readonly message: string;
  /** Sum of its stages. */
  readonly size: number;
  readonly stages: readonly RolloutStage[];
  readonly endedAt?: string;
  readonly supersededBy?: number;
  /** The last of each stage. */
  readonly failures: readonly (StageRunRow["failures"][number] & { readonly stage: string })[];
  readonly transitions: readonly (Transition & { readonly stage: string })[];
}
export type RolloutObject = ApiObject<"Rollout", RolloutSpec, RolloutStatus>;

/** One cluster in one leg of a content. */
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
  /** Its worker tries again what did not go: the reason is what stood in the way. */
  readonly retrying?: true;
  /** The Sync that the reason is about, where one was assigned: the first that is not ready. */
  readonly sync?: string;
}

/** A Sync, or what stands for one. */
interface CountedSync {
  readonly metadata: Pick<ObjectMeta, "name" | "namespace">;
  readonly status: { readonly state: string; readonly observed?: Pick<Observed, "at" | "phase"> };
}

export type EventItem = Omit<EventRow, keyof Row>;

/** Where events of many are listed: whose each is. */
export interface EventAbout {
  readonly about: Owner;
}

/** Events of many, and of how many groups and written Syncs they were read. */
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
  | DiscoveryObject
  | ClusterObject
  | ClusterValuesObject
  | SyncGroupObject
  | SyncObject
  | RolloutObject;

export function sourceObject(row: SourceRow): SourceObject {
  return { ...head("Source", row), spec: row.spec, ...operationsOf(row), status: row.status };
}

export function discoveryObject(row: DiscoveryRow, installation: string): DiscoveryObject {
  const { resume: _resume, ...known } = row.status;
  const status = { ...known, externalId: discoveryIdentity(installation, row.name) };
  return { ...head("ClusterDiscovery", row), spec: row.spec, ...operationsOf(row), status };
}

/** @param fleet - the registered clusters; left out, how many it selects is not told. */
export function clusterValuesObject(row: ClusterValuesRow, fleet?: readonly SelectableCluster[]): ClusterValuesObject {
  const clusters = fleet?.filter((cluster) => selects(row.spec.clusters, cluster)).length;
  const status = { ...row.status, ...defined({ clusters }) };
  return { ...head("ClusterValues", row), spec: row.spec, ...operationsOf(row), status };
}

interface SeenOfCluster {
  readonly syncs?: readonly CountedSync[];
  readonly freeze?: Freeze | undefined;
  /** Every ClusterValues, see `inOrder`; left out, what values count is not told. */
  readonly values?: readonly ClusterValuesRow[] | undefined;
}

export function clusterObject(row: ClusterRow, installation: string, seen: SeenOfCluster = {}): ClusterObject {
  const { syncs = [], freeze } = seen;
  const frozen = freeze === undefined ? {} : { frozen: frozenBy(freeze) };
  const access = specOf(row).access === undefined ? {} : { externalId: externalIdOf(installation, row.name) };
  const { discovered } = row;
  const isPlain = discovered === undefined && row.spec.kubeVersion === undefined;
  const found = { ...defined({ discovered }), ...(isPlain ? {} : { labels: clusterLabels(row) }) };
  const { address: _address, blobsAt: _blobsAt, renewedAt: _renewedAt, ...known } = row.status;
  const values = seen.values === undefined ? {} : valuesOf(row, seen.values);
  const status = {
    ...known,
    ...access,
    ...frozen,
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

/** Looks that find nothing new are not noted in the Cluster's row. */
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

/** A Sync that a user wrote, with what its cluster says once the planner has assigned it. */
export function userSyncObject(row: UserSyncRow, onCluster: SyncRow | undefined, behind?: OutOfSync): SyncObject {
  const plan = row.status;
  // What was forgotten is on no cluster, and what planner says is all there is to say.
  const there = onCluster?.desired.action === "orphan" ? undefined : onCluster;
  const status =
    there === undefined
      ? { state: syncState(undefined, { plan }), conditions: plan.conditions }
      : statusOf(there, { behind, plan });
  return { ...head("Sync", row), spec: row.spec, ...operationsOf(row), status: { ...status, plan } };
}

/** A Sync on a cluster that a group wrote; `owner` is the row of the group, when it is still there. */
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
  /** Whatever else it says: what it is about, and what was found. */
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
    ...defined({ outOfSync: behind }),
    ...(held === undefined ? {} : { frozen: { ...frozenBy(held), since: held.since } }),
  };
  if (row.observed === undefined) return { ...said, conditions: [] };
  const { conditions, fence: _fence, handledPrune, ...observed } = row.observed;
  const asked = row.operations?.prune;
  const prune = asked === undefined ? {} : { prune: { ...asked, handled: handledPrune === asked.number } };
  return { ...said, observed, conditions, ...prune };
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
