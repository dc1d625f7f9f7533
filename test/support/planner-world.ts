import { planOwner } from "#functions/rollout/call/plan-owner.ts";
import { plannerSteps } from "#functions/rollout/call/planner-steps.ts";
import { writeWithFleet } from "#shared/adapters/fleet-writes.ts";
import { randomIds } from "#shared/adapters/system.ts";
import { defined } from "#shared/base/defined.ts";
import { digestOf } from "#shared/base/digest.ts";
import { compareText } from "#shared/base/text-order.ts";
import { isFresh } from "#shared/fleet/blob-life.ts";
import type { GuardSpec } from "#shared/fleet/kinds/guard-spec.ts";
import { sourceSpec } from "#shared/fleet/kinds/source.ts";
import type { RolloutStrategy } from "#shared/fleet/kinds/sync-group.ts";
import { syncGroupSpec } from "#shared/fleet/kinds/sync-group.ts";
import { isThrough } from "#shared/fleet/rollout/order.ts";
import { dueAttributes, watchdogAt } from "#shared/fleet/rows/due.ts";
import type { FreezeState, FreezesRow } from "#shared/fleet/rows/freezes-row.ts";
import { keys, type Owner, stateIndex } from "#shared/fleet/rows/keys.ts";
import type { FleetRow, Operations, SourceRow, SyncGroupRow } from "#shared/fleet/rows/object-rows.ts";
import type {
  RenderingRow,
  RolloutRow,
  RolloutStateRow,
  SlotRow,
  StageRecord,
  StageRunRow,
  TargetRow,
} from "#shared/fleet/rows/rollout-rows.ts";
import { keyText, rowSchema } from "#shared/fleet/rows/row.ts";
import type { Observed, Phase, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { zoneUpdate } from "#shared/fleet/rows/zone-row.ts";
import type { ServedNames } from "#shared/fleet/served-names.ts";
import type { Log, MessageSender, Metrics, Table } from "#shared/ports.ts";
import { valueArtifacts } from "#shared/source/helm/helm-release.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { MemorySender } from "#test/support/memory-sender.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { observedOf } from "#test/support/sync-rows.ts";
import { decidedTable } from "#test/support/versioned-table.ts";

export const silentLog: Log = { info: () => {}, warn: () => {}, error: () => {} };
export const silentMetrics: Metrics = { count: () => {}, seconds: () => {} };
export const owner: Owner = { namespace: "shop", kind: "SyncGroup", name: "web" };

/** Operations as the API writes them. Those without a number are new and get the next one. */
export type OperationsInput = {
  readonly [Verb in keyof Operations]: Omit<NonNullable<Operations[Verb]>, "number"> & { readonly number?: number };
};

/**
 * An owner, its fleet and its workers over the memory table, for tests of the planner alone. The tests play workers and
 * renderers through the rows, as the real ones do.
 */
export class PlannerWorld {
  readonly table: MemoryTable;
  readonly blobs: MemoryBlobStore;
  readonly sender = new MemorySender();
  /** The planner's steps, in another order than that of the table only where a test exchanges them. */
  steps = plannerSteps;
  /** The installation's guard of groups that have none. */
  defaultGuard: GuardSpec | undefined;
  /** The zones of the installation besides `home`. */
  zones: ReadonlySet<string> = new Set();
  servedNames: ServedNames = new Map();
  now = new Date("2026-11-21T08:00:00.000Z");
  readonly clock = { now: () => this.now };
  #nextAct = 1;

  constructor(stores = { table: new MemoryTable(), blobs: new MemoryBlobStore() }) {
    this.table = stores.table;
    this.blobs = stores.blobs;
  }

  /**
   * @param table - as the planner sees it.
   * @param clusters - of which something was told; left out: of any.
   */
  async plan(
    table: Table = this.table,
    clusters?: readonly string[],
    sender: MessageSender = this.sender,
  ): Promise<void> {
    const call = {
      until: new Date(this.now.getTime() + 60_000),
      ...(clusters === undefined ? {} : { clusters: new Set(clusters) }),
    };
    await planOwner(
      owner,
      call,
      {
        table: decidedTable(table, this.table, keys.object(owner.namespace, owner.kind, owner.name)),
        blobs: this.blobs,
        sender,
        clock: this.clock,
        ids: randomIds,
        log: silentLog,
        installation: "test",
        defaultGuard: this.defaultGuard,
        zones: this.zones,
        servedNames: this.servedNames,
      },
      this.steps,
    );
  }

  advanceClock(seconds: number): void {
    this.now = new Date(this.now.getTime() + seconds * 1000);
  }

  async addCluster(
    name: string,
    ring: string,
    more: { uid?: string; labels?: Record<string, string>; zone?: string } = {},
  ): Promise<void> {
    const before = await this.table.get(keys.fleet(name));
    const row: FleetRow = {
      ...keys.fleet(name),
      type: "Fleet",
      schema: rowSchema,
      version: (before?.version ?? 0) + 1,
      name,
      uid: more.uid ?? name,
      labels: { ring, ...more.labels },
      values: {},
      ...defined({ zone: more.zone }),
    };
    await writeWithFleet(this.table, [{ put: row }]);
  }

  /** A worker of the zone runs now. */
  async pulse(zone: string): Promise<void> {
    await this.table.update(zoneUpdate(zone, this.now));
  }

  async removeCluster(name: string): Promise<void> {
    await writeWithFleet(this.table, [{ delete: keys.fleet(name) }]);
  }

  async setSource(commit: string, rollout = commit, name = "app"): Promise<void> {
    const key = keys.object(owner.namespace, "Source", name);
    const before = await this.table.get(key);
    const row: SourceRow = {
      ...key,
      ...objectParts(name),
      type: "Source",
      version: (before?.version ?? 0) + 1,
      spec: sourceSpec.parse({ git: { url: "https://git.example/app" } }),
      status: {
        artifact: {
          revision: `main@sha1:${commit}`,
          digest: digestOf(rollout),
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
    guard?: unknown,
  ): Promise<void> {
    const key = keys.object(owner.namespace, "SyncGroup", owner.name);
    const before = await this.table.get(key);
    const row: SyncGroupRow = {
      ...(before ?? { ...key, ...objectParts(owner.name), status: { conditions: [] } }),
      type: "SyncGroup",
      version: (before?.version ?? 0) + 1,
      generation: (before?.generation ?? 0) + 1,
      spec: syncGroupSpec.parse({ clusters, templates, rollout, ...defined({ guard }) }),
    };
    await this.table.write([{ put: this.#asked(row) }]);
  }

  async operate(operations: OperationsInput): Promise<void> {
    const row = await this.group();
    const numbered = (act: object) => ({ number: this.#nextAct++, ...act });
    const acts = Object.entries(operations).map(([verb, act]) => [verb, Array.isArray(act) ? act : numbered(act)]);
    const next: SyncGroupRow = { ...row, operations: Object.fromEntries(acts) as Operations, version: row.version + 1 };
    await this.table.write([{ put: this.#asked(next), when: { version: row.version } }]);
  }

  /** Replaces the freezes. */
  async setFreezes(halves: Partial<FreezeState>): Promise<void> {
    const before = await this.table.get(keys.freezeState);
    const version = (before?.version ?? 0) + 1;
    const put: FreezesRow = {
      ...keys.freezeState,
      type: "Freezes",
      schema: rowSchema,
      version,
      freezes: [],
      lifted: [],
      ...halves,
    };
    await this.table.write([{ put }]);
  }

  /** As the API leaves a row that it has told the planner about. */
  #asked(row: SyncGroupRow): SyncGroupRow {
    return { ...row, dispatches: 1, ...dueAttributes(row, watchdogAt(this.now, 0)) };
  }

  /** Plays renderers and workers, all successful, until no work is in progress. */
  async rollOut(): Promise<void> {
    for (let round = 0; round < 60; round++) {
      await this.plan();
      await this.renderAll();
      await this.plan();
      for (const slot of this.slots()) await this.finish(slot.cluster);
      if (this.isThrough()) return;
    }
    throw new Error(`the rollout does not complete: ${JSON.stringify(this.stageRuns().at(-1))}`);
  }

  /** Reports the end of every Sync in the slot of the cluster, by default as Ready. */
  async finish(cluster: string, phase: Phase = "Ready"): Promise<void> {
    const slot = this.slots().find((one) => one.cluster === cluster);
    for (const name of Object.keys(slot?.attempts ?? {})) {
      const row = await this.sync(cluster, name);
      const isDeletion = row?.desired.action === "delete" && phase === "Ready";
      await this.observe(cluster, isDeletion ? "Gone" : phase, { name });
    }
  }

  /** Whether every stage's current rollout is the newest one, and nothing waits. */
  isThrough(): boolean {
    const rolloutState = this.rolloutState();
    const { waiting, changing } = rolloutState.catchUps;
    return waiting + changing + rolloutState.jobs.length + this.slots().length === 0 && isThrough(rolloutState);
  }

  /**
   * Plays the renderer: completes, keeps or fails every requested rendering. A failed rendering can be marked as idle.
   */
  async renderAll(
    failure?: string | { readonly message: string; readonly retryAt: string },
    of: (row: RenderingRow) => boolean = () => true,
  ): Promise<void> {
    const doneAt = this.now.toISOString();
    for (const row of this.rows<RenderingRow>("Rendering")) {
      const isOld = row.state === "Done" && !isFresh(row.doneAt, this.now);
      if ((row.state !== "Pending" && !isOld) || !of(row)) continue;
      const done =
        failure === undefined
          ? {
              state: "Done" as const,
              digest: digestOf([row.artifactDigest, row.path, ...valueArtifacts(row.render?.helm)].join("")),
              objects: 1,
              doneAt,
            }
          : failed(failure);
      await this.table.write([{ put: { ...row, ...done, version: row.version + 1 }, when: { version: row.version } }]);
    }
  }

  /** Plays the renderer for idle renderings that are tried again; all succeed. */
  async renderRested(): Promise<void> {
    for (const row of this.rows<RenderingRow>("Rendering")) {
      if (row.retryAt === undefined) continue;
      const { retryAt: _rest, failure: _failure, ...rest } = row;
      const next: RenderingRow = {
        ...rest,
        state: "Done",
        digest: digestOf(row.path),
        doneAt: this.now.toISOString(),
        version: row.version + 1,
      };
      await this.table.write([{ put: next, when: { version: row.version } }]);
    }
  }

  /** Plays a cluster's worker: reports the state of the newest attempt of its Sync. */
  async observe(
    cluster: string,
    phase: Phase,
    more: Partial<Pick<Observed, "reason" | "attempt" | "problems" | "guardedPrune" | "nextAt">> & {
      readonly name?: string;
    } = {},
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
    const observed = observedOf({
      attempt: more.attempt ?? row.desired.attempt,
      phase,
      reason: more.reason ?? phase,
      startedAt: at,
      since: at,
      at,
      ...(phase === "Ready" || phase === "Verifying" ? { applied } : {}),
      objects: { total: 1, ready: phase === "Ready" ? 1 : 0, failed: 0, foreign: 0 },
      ...defined({
        handledReconcile: row.reconcile,
        problems: more.problems,
        nextAt: more.nextAt,
        guardedPrune: more.guardedPrune,
      }),
    });
    const next: SyncRow = { ...row, observed, version: row.version + 1, stateSk: stateIndex.sk(phase, row) };
    await this.table.write([{ put: next, when: { version: row.version } }]);
  }

  async sync(cluster: string, name = "web.app"): Promise<SyncRow | undefined> {
    return this.table.get(keys.sync(cluster, owner.namespace, name));
  }

  async group(): Promise<SyncGroupRow> {
    const row = await this.table.get(keys.object(owner.namespace, "SyncGroup", owner.name));
    if (row === undefined) throw new Error("the group is gone");
    return row;
  }

  rolloutState(): RolloutStateRow {
    const [rolloutState] = this.rows<RolloutStateRow>("RolloutState");
    if (rolloutState === undefined) throw new Error("nothing was planned yet");
    return rolloutState;
  }

  /** The current rollout by stage, and in brackets the rollout that the stage is updating to. */
  stages(): Readonly<Record<string, string>> {
    const text = ({ current, updatingTo }: StageRecord) =>
      `${current ?? "-"}${updatingTo === undefined ? "" : ` (${updatingTo.rollout})`}`;
    return Object.fromEntries(this.rolloutState().stages.map((stage) => [stage.name, text(stage)]));
  }

  rollouts(): readonly RolloutRow[] {
    return this.rows<RolloutRow>("Rollout");
  }

  stageRuns(): readonly StageRunRow[] {
    return this.rows<StageRunRow>("StageRun");
  }

  /** The newest stage run of a stage. */
  stageRun(stage: string): StageRunRow {
    const stageRuns = this.stageRuns().filter((one) => one.stage === stage);
    const stageRun = stageRuns.sort((a, b) => a.snapshot - b.snapshot).at(-1);
    if (stageRun === undefined) throw new Error(`nothing goes through ${stage}`);
    return stageRun;
  }

  slots(): readonly SlotRow[] {
    return this.rows<SlotRow>("Slot");
  }

  targets(rollout = this.rolloutState().last): readonly TargetRow[] {
    return this.rows<TargetRow>("Target").filter((row) => row.stageRun.rollout === rollout);
  }

  /**
   * The state by cluster for the newest rollout. A waiting cluster has no row, and a cluster with a slot is Assigned.
   */
  states(): Readonly<Record<string, string>> {
    const { last } = this.rolloutState();
    const slots = this.slots().filter(
      ({ stageRun, releasing }) => stageRun?.rollout === last && releasing === undefined,
    );
    return Object.fromEntries([
      ...slots.map(({ cluster }) => [cluster, "Assigned"]),
      ...this.targets().map(({ cluster, state }) => [cluster, state]),
    ]);
  }

  /** Rows by key. */
  rows<R>(type: string): readonly R[] {
    const rows = this.table.all().filter((row) => row.type === type);
    return rows.sort((a, b) => compareText(keyText(a), keyText(b))) as unknown as readonly R[];
  }
}

function failed(failure: string | { readonly message: string; readonly retryAt: string }) {
  const rests = typeof failure === "string" ? undefined : failure;
  const message = rests?.message ?? String(failure);
  return {
    state: "Failed" as const,
    failure: { code: "RenderFailed", message, permanent: rests === undefined },
    ...(rests === undefined ? {} : { retryAt: rests.retryAt }),
  };
}

function objectParts(name: string) {
  return {
    schema: rowSchema,
    namespace: owner.namespace,
    name,
    uid: name,
    labels: {},
    annotations: {},
    generation: 1,
    createdAt: "2026-11-21T08:00:00.000Z",
    operations: {},
  };
}
