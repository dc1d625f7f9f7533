/** A worker of one cluster, its rows in memory. */

import type { ClusterConnector, WorkerPorts, WorkerZone } from "#functions/apply/cluster/worker-ports.ts";
import type { Lane } from "#functions/apply/worker/work-cluster.ts";
import { workCluster } from "#functions/apply/worker/work-cluster.ts";
import { randomIds, systemClock } from "#shared/adapters/system.ts";
import { defined } from "#shared/base/defined.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import type { FreezesRow } from "#shared/fleet/rows/freezes-row.ts";
import { keys, stateIndex } from "#shared/fleet/rows/keys.ts";
import type { LeaseRow } from "#shared/fleet/rows/lease-row.ts";
import { nextDesired } from "#shared/fleet/rows/lineage.ts";
import type { UserSyncRow } from "#shared/fleet/rows/object-rows.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";
import type { Observed, Paused, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { indexedState } from "#shared/fleet/sync/sync-state.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import type { BlobStore, Log, Table } from "#shared/ports.ts";
import { encodeRendering } from "#shared/source/rendering.ts";
import { clusterRow } from "#test/support/cluster-row.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { MemorySender } from "#test/support/memory-sender.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { silentLog, silentMetrics } from "#test/support/planner-world.ts";
import { versionedTable } from "#test/support/versioned-table.ts";

interface WorkOptions {
  readonly table?: Table;
  readonly connector?: ClusterConnector;
  /** The same blobs through another store: a sandbox that has read none of them. */
  readonly blobs?: BlobStore;
  readonly remainingMs?: number;
  /** How often the worker's message was received; by default there is no message. */
  readonly receives?: number;
  /** The lane of the message. It is the slow one by default, where a worker has all of its time. */
  readonly lane?: Lane;
  /** When that was sent. */
  readonly sentAt?: Date;
  readonly log?: Log;
  /** The zone of the worker. The default is `home` of an installation without other zones. */
  readonly zone?: WorkerZone;
}

interface AssignOptions extends Pick<SyncRow["desired"], "startAt" | "beginBefore" | "objectBounds" | "mayPrune"> {
  readonly upgrade?: readonly ManifestObject[];
  /** Name of the SyncGroup that the Sync is a template of; a user's own Sync when left out. */
  readonly group?: string;
}

const deletion = { by: "ana", at: "2026-11-20T08:00:00.000Z", number: 9, cascade: "delete" as const };

/** The planner's part is the test's: it assigns. Syncs are of the namespace `tests`, the cluster is `c1`. */
export class WorkerWorld {
  readonly #connector: ClusterConnector;
  /** By the table that is given: the worker's runs are those of one sandbox. */
  readonly #tables = new WeakMap<Table, Table>();
  readonly table = new MemoryTable();
  readonly blobs: BlobStore;
  readonly sender = new MemorySender();
  /** Milliseconds by which the clock is ahead. */
  aheadMs = 0;
  readonly clock = { ...systemClock, now: () => new Date(Date.now() + this.aheadMs) };

  constructor(connector: ClusterConnector, blobs: BlobStore = new MemoryBlobStore()) {
    this.#connector = connector;
    this.blobs = blobs;
  }

  async begin(): Promise<this> {
    await this.table.write([{ put: clusterRow() }]);
    return this;
  }

  async assign(
    name: string,
    objects: readonly ManifestObject[],
    apply: Partial<SyncRow["desired"]["apply"]> = {},
    { upgrade = objects, group, ...more }: AssignOptions = {},
  ): Promise<void> {
    const { digest, bytes } = encodeRendering(objects, upgrade);
    await this.blobs.overwrite(blobKeys.rendering(digest), bytes);
    const before = await this.sync(name);
    const { paused: _paused, ...kept } = before ?? {};
    const row: SyncRow = {
      ...kept,
      ...keys.sync("c1", "tests", name),
      type: "SyncOnCluster",
      schema: rowSchema,
      version: (before?.version ?? 0) + 1,
      cluster: "c1",
      namespace: "tests",
      name,
      uid: `uid-of-${name}`,
      owner: {
        namespace: "tests",
        ...(group === undefined ? { kind: "Sync", name } : { kind: "SyncGroup", name: group }),
      },
      ownerUid: "uid-of-the-owner",
      desired: nextDesired(
        {
          action: "apply",
          attempt: (before?.desired.attempt ?? 0) + 1,
          revision: "main@sha1:1",
          renderDigest: digest,
          apply: { prune: true, drift: "correct", interval: "10m", ...apply },
          rollout: 1,
          assignedAt: this.clock.now().toISOString(),
          ...more,
        },
        before,
        randomIds.unique(),
      ),
    };
    await this.table.write([{ put: row }]);
  }

  /** It loses its slot before it is done. */
  async pause(name: string, { reason = "DeadlineExceeded", ...more }: Partial<Paused> = {}): Promise<void> {
    const before = await this.sync(name);
    if (before === undefined) throw new Error(`there is no Sync ${name}`);
    const held: SyncRow = {
      ...before,
      paused: { reason, at: this.clock.now().toISOString(), ...more },
      version: before.version + 1,
    };
    await this.table.write([{ put: { ...held, stateSk: stateIndex.sk(indexedState(held), held) } }]);
  }

  /** Assigns the deletion of a Sync; if the Sync has an owner, the owner gets the deletion, too. */
  async assignDelete(name: string): Promise<void> {
    const before = await this.sync(name);
    if (before === undefined) throw new Error(`there is no Sync ${name}`);
    const { renderDigest: _, token: _token, earlier: _earlier, anew: _anew, ...desired } = before.desired;
    const assigned = { ...desired, action: "delete" as const, attempt: desired.attempt + 1 };
    const next = nextDesired(assigned, before, randomIds.unique());
    const { paused: _paused, ...kept } = before;
    await this.table.write([{ put: { ...kept, version: before.version + 1, desired: next } as SyncRow }]);
    const owner = await this.table.get(keys.object("tests", "Sync", name));
    if (owner !== undefined)
      await this.setOwner(name, { status: owner.status, operations: { ...owner.operations, deletion } });
  }

  /** Writes the owner, a user's Sync, as the api and the planner leave it; it has a deletion if the Sync has one. */
  async setOwner(name: string, half: Partial<Pick<UserSyncRow, "status" | "operations">>): Promise<void> {
    const isGoing = (await this.sync(name))?.desired.action === "delete";
    const owner: UserSyncRow = {
      ...keys.object("tests", "Sync", name),
      type: "Sync",
      schema: rowSchema,
      version: 1,
      uid: `uid-of-${name}`,
      namespace: "tests",
      name,
      labels: {},
      annotations: {},
      generation: 1,
      createdAt: "2026-11-20T08:00:00.000Z",
      spec: { cluster: "c1", source: "app", path: "deploy", apply: { prune: true, drift: "correct", interval: "10m" } },
      status: { conditions: [] },
      ...half,
      operations: { ...(isGoing ? { deletion } : {}), ...half.operations },
    };
    await this.table.write([{ put: owner }]);
  }

  /** Withdraws the deletion of the Sync's owner. */
  async withdrawDeletion(name: string): Promise<void> {
    await this.setOwner(name, {});
    const owner = await this.table.get(keys.object("tests", "Sync", name));
    if (owner === undefined) throw new Error(`there is no owner ${name}`);
    const next: UserSyncRow = { ...(owner as UserSyncRow), operations: {}, version: owner.version + 1 };
    await this.table.write([{ put: next }]);
  }

  async suspend(name: string): Promise<void> {
    await this.setOwner(name, {
      operations: { suspended: { by: "ana", at: "2026-11-20T08:00:00.000Z", number: 1 } },
    });
  }

  /** Replaces the freezes. */
  async setFreezes(freezeState: Partial<Pick<FreezesRow, "freezes" | "lifted">>): Promise<void> {
    const row: FreezesRow = {
      ...keys.freezeState,
      type: "Freezes",
      schema: rowSchema,
      version: 1,
      freezes: [],
      lifted: [],
      ...freezeState,
    };
    await this.table.write([{ put: row }]);
  }

  async sync(name: string): Promise<SyncRow | undefined> {
    return this.table.get(keys.sync("c1", "tests", name));
  }

  /** @throws Error when no worker has observed the Sync. */
  async observedOf(name: string): Promise<Observed> {
    const observed = (await this.sync(name))?.observed;
    if (observed === undefined) throw new Error(`nobody has checked ${name}`);
    return observed;
  }

  async phase(name: string): Promise<string | undefined> {
    return (await this.sync(name))?.observed?.phase;
  }

  async lease(): Promise<LeaseRow | undefined> {
    return this.table.get(keys.lease("c1"));
  }

  /** @param options.remainingMs - of the invocation; five minutes by default. */
  async work(options: WorkOptions = {}): Promise<number | undefined> {
    const { remainingMs = 300_000, lane = "slow", receives, sentAt, table = this.table, ...instead } = options;
    const ports: WorkerPorts = {
      table: this.#versioned(table),
      blobs: this.blobs,
      sender: this.sender,
      clock: this.clock,
      ids: randomIds,
      log: silentLog,
      metrics: silentMetrics,
      connector: this.#connector,
      installation: "installation-1",
      zone: { own: "home", others: [] },
      ...instead,
    };
    return workCluster("c1", { remainingMs, lane, ...defined({ receives, sentAt }) }, ports);
  }

  #versioned(table: Table): Table {
    const versioned = this.#tables.get(table) ?? versionedTable(table, this.table);
    this.#tables.set(table, versioned);
    return versioned;
  }
}
