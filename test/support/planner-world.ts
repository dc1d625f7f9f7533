import { planSubject } from "#functions/rollout/plan-subject.ts";
import { randomIds } from "#shared/adapters/system.ts";
import { defined } from "#shared/base/defined.ts";
import { digestOf } from "#shared/base/digest.ts";
import { sourceSpec } from "#shared/fleet/kinds/source.ts";
import type { RolloutStrategy } from "#shared/fleet/kinds/sync-group.ts";
import { syncGroupSpec } from "#shared/fleet/kinds/sync-group.ts";
import { dueAttributes, watchdogAt } from "#shared/fleet/rows/due.ts";
import { keys, type Subject } from "#shared/fleet/rows/keys.ts";
import type { FleetRow, Operations, SourceRow, SyncGroupRow } from "#shared/fleet/rows/object-rows.ts";
import type { HeadRow, RenderingRow, RolloutRow, TargetRow } from "#shared/fleet/rows/rollout-rows.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";
import type { Observed, Phase, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Log, Metrics, Table } from "#shared/ports.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { MemorySender } from "#test/support/memory-sender.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { decidedTable } from "#test/support/versioned-table.ts";

export const silentLog: Log = { info: () => {}, warn: () => {}, error: () => {} };
export const silentMetrics: Metrics = { count: () => {} };
export const subject: Subject = { namespace: "shop", kind: "SyncGroup", name: "web" };

/** Acts as the api writes them; those without a number are new and get the next one. */
export type Told = {
  readonly [Verb in keyof Operations]: Omit<NonNullable<Operations[Verb]>, "number"> & { readonly number?: number };
};

/**
 * A subject, its fleet and its workers, driven by hand over the memory table: what the planner and nothing else is
 * tested against. Workers and renderers are played by whoever drives it, through the rows, as the real ones do.
 */
export class PlannerWorld {
  readonly table: MemoryTable;
  readonly blobs: MemoryBlobStore;
  readonly sender = new MemorySender();
  now = new Date("2026-11-21T08:00:00.000Z");
  #nextAct = 1;

  constructor(stores = { table: new MemoryTable(), blobs: new MemoryBlobStore() }) {
    this.table = stores.table;
    this.blobs = stores.blobs;
  }

  /** @param table - as the planner sees it. */
  async plan(table: Table = this.table): Promise<void> {
    await planSubject(subject, {
      table: decidedTable(table, this.table, keys.object(subject.namespace, subject.kind, subject.name)),
      blobs: this.blobs,
      sender: this.sender,
      clock: { now: () => this.now },
      ids: randomIds,
      log: silentLog,
      installation: "test",
    });
  }

  advanceClock(seconds: number): void {
    this.now = new Date(this.now.getTime() + seconds * 1000);
  }

  async addCluster(
    name: string,
    ring: string,
    more: { uid?: string; labels?: Record<string, string> } = {},
  ): Promise<void> {
    const row: FleetRow = {
      ...keys.fleet(name),
      type: "Fleet",
      schema: rowSchema,
      version: 1,
      name,
      uid: more.uid ?? name,
      labels: { ring, ...more.labels },
      values: {},
    };
    await this.table.write([{ put: row }]);
  }

  async removeCluster(name: string): Promise<void> {
    await this.table.write([{ delete: keys.fleet(name) }]);
  }

  async setSource(commit: string, content = commit): Promise<void> {
    const key = keys.object(subject.namespace, "Source", "app");
    const before = await this.table.get(key);
    const row: SourceRow = {
      ...key,
      ...objectParts("app"),
      type: "Source",
      version: (before?.version ?? 0) + 1,
      spec: sourceSpec.parse({ git: { url: "https://git.example/app" } }),
      status: {
        artifact: {
          revision: `main@sha1:${commit}`,
          digest: digestOf(content),
          sizeBytes: 1,
          files: 1,
          storedAt: this.now.toISOString(),
          subject: commit,
          author: "dev",
        },
        conditions: [],
      },
    };
    await this.table.write([{ put: row }]);
  }

  async setGroup(
    rollout: Partial<RolloutStrategy>,
    templates: readonly unknown[] = [{ name: "app", source: "app" }],
    clusters: unknown = { all: true },
  ): Promise<void> {
    const key = keys.object(subject.namespace, "SyncGroup", subject.name);
    const before = await this.table.get(key);
    const row: SyncGroupRow = {
      ...(before ?? { ...key, ...objectParts(subject.name), status: { conditions: [] } }),
      type: "SyncGroup",
      version: (before?.version ?? 0) + 1,
      generation: (before?.generation ?? 0) + 1,
      spec: syncGroupSpec.parse({ clusters, templates, rollout }),
    };
    await this.table.write([{ put: this.#asked(row) }]);
  }

  async operate(told: Told): Promise<void> {
    const row = await this.group();
    const acts = Object.entries(told).map(([verb, act]) => [verb, { number: this.#nextAct++, ...act }]);
    const operations = Object.fromEntries(acts) as Operations;
    const next: SyncGroupRow = { ...row, operations, version: row.version + 1 };
    await this.table.write([{ put: this.#asked(next), when: { version: row.version } }]);
  }

  /** As the API leaves a row that it has told the planner about. */
  #asked(row: SyncGroupRow): SyncGroupRow {
    return { ...row, dispatches: 1, ...dueAttributes(row, watchdogAt(this.now, 0)) };
  }

  /** Plays everybody, all well, until the rollout is complete. */
  async rollOut(): Promise<void> {
    for (let round = 0; round < 60; round++) {
      await this.plan();
      await this.renderAll();
      await this.plan();
      for (const target of this.targets()) {
        if (target.state === "Assigned") await this.observe(target.cluster, "Ready");
      }
      if (this.newest().phase === "Complete") return;
    }
    throw new Error(`the rollout does not complete: ${this.newest().message}`);
  }

  /** Plays the renderer: every rendering asked for is done, or fails; what fails may be said to rest. */
  async renderAll(
    failure?: string | { readonly message: string; readonly restsUntil: string },
    of: (row: RenderingRow) => boolean = () => true,
  ): Promise<void> {
    for (const row of this.rows<RenderingRow>("Rendering")) {
      if (row.state !== "Pending" || !of(row)) continue;
      const done =
        failure === undefined
          ? { state: "Done" as const, digest: digestOf(`${row.artifactDigest}${row.path}`), objects: 1 }
          : failed(failure);
      await this.table.write([{ put: { ...row, ...done, version: row.version + 1 }, when: { version: row.version } }]);
    }
  }

  /** Plays the renderer where what rested is tried again: it is done. */
  async renderRested(): Promise<void> {
    for (const row of this.rows<RenderingRow>("Rendering")) {
      if (row.restsUntil === undefined) continue;
      const { restsUntil: _rest, failure: _failure, ...rest } = row;
      const next: RenderingRow = { ...rest, state: "Done", digest: digestOf(row.path), version: row.version + 1 };
      await this.table.write([{ put: next, when: { version: row.version } }]);
    }
  }

  /** Plays a cluster's worker: says where the newest attempt of its Sync is. */
  async observe(
    cluster: string,
    phase: Phase,
    more: { readonly reason?: string; readonly attempt?: number; readonly name?: string } = {},
  ): Promise<void> {
    const row = await this.sync(cluster, more.name);
    if (row === undefined) throw new Error(`nothing was assigned to ${cluster}`);
    const at = this.now.toISOString();
    const applied = {
      renderDigest: row.desired.renderDigest ?? "",
      revision: row.desired.revision,
      attempt: row.desired.attempt,
      at,
    };
    const observed: Observed = {
      attempt: more.attempt ?? row.desired.attempt,
      phase,
      reason: more.reason ?? phase,
      message: "",
      startedAt: at,
      since: at,
      at,
      tries: 0,
      ...(phase === "Ready" || phase === "Verifying" ? { applied } : {}),
      objects: { total: 1, ready: phase === "Ready" ? 1 : 0, failed: 0, foreign: 0 },
      troubles: [],
      fence: 1,
      conditions: [],
      ...defined({ handledReconcile: row.reconcile }),
    };
    const next: SyncRow = { ...row, observed, version: row.version + 1, stateSk: `${phase}#${cluster}#${row.name}` };
    await this.table.write([{ put: next, when: { version: row.version } }]);
  }

  async sync(cluster: string, name = "web.app"): Promise<SyncRow | undefined> {
    return this.table.get(keys.sync(cluster, subject.namespace, name));
  }

  async group(): Promise<SyncGroupRow> {
    const row = await this.table.get(keys.object(subject.namespace, "SyncGroup", subject.name));
    if (row === undefined) throw new Error("the group is gone");
    return row;
  }

  async head(): Promise<HeadRow | undefined> {
    return this.table.get(keys.head(subject));
  }

  rollouts(): readonly RolloutRow[] {
    return this.rows<RolloutRow>("Rollout");
  }

  newest(): RolloutRow {
    const rollout = this.rollouts().at(-1);
    if (rollout === undefined) throw new Error("there is no rollout");
    return rollout;
  }

  targets(number = this.newest().number): readonly TargetRow[] {
    const prefix = keys.rollout(subject, number).sk;
    return this.rows<TargetRow>("Target").filter((row) => row.sk.startsWith(`${prefix}#`));
  }

  /** Cluster -> state, of the newest rollout. */
  states(): Readonly<Record<string, string>> {
    return Object.fromEntries(this.targets().map((target) => [target.cluster, target.state]));
  }

  rows<R>(type: string): readonly R[] {
    return this.table.all().filter((row) => row.type === type) as unknown as readonly R[];
  }
}

function failed(failure: string | { readonly message: string; readonly restsUntil: string }) {
  const rests = typeof failure === "string" ? undefined : failure;
  const message = rests?.message ?? String(failure);
  return {
    state: "Failed" as const,
    failure: { code: "RenderFailed", message, permanent: rests === undefined },
    ...(rests === undefined ? {} : { restsUntil: rests.restsUntil }),
  };
}

function objectParts(name: string) {
  return {
    schema: rowSchema,
    namespace: subject.namespace,
    name,
    uid: name,
    labels: {},
    annotations: {},
    generation: 1,
    createdAt: "2026-11-21T08:00:00.000Z",
    operations: {},
  };
}
