import { planOwner } from "#functions/rollout/call/plan-owner.ts";
import type { GivenPorts } from "#functions/rollout/read/planner-ports.ts";
import { writeWithFleet } from "#shared/adapters/fleet-writes.ts";
import { randomIds } from "#shared/adapters/system.ts";
import { defined } from "#shared/base/defined.ts";
import { digestOf } from "#shared/base/digest.ts";
import { inParts } from "#shared/base/in-parts.ts";
import { sourceSpec } from "#shared/fleet/kinds/source.ts";
import { syncGroupSpec } from "#shared/fleet/kinds/sync-group.ts";
import { isThrough } from "#shared/fleet/rollout/order.ts";
import { fleetVersionUpdate } from "#shared/fleet/rows/fleet-version.ts";
import { keys, type Owner, stateIndex } from "#shared/fleet/rows/keys.ts";
import type { FleetRow, SyncGroupRow } from "#shared/fleet/rows/object-rows.ts";
import type { RolloutStateRow, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import { type Row, rowSchema } from "#shared/fleet/rows/row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Message } from "#shared/messages.ts";
import type { BlobStore, Table } from "#shared/ports.ts";
import { observedOf } from "#test/support/sync-rows.ts";

/** The number of clusters in one message to the planner: the Syncs of one batch of reports. */
const clustersPerMessage = 10;

export interface GroupShape {
  readonly name: string;
  readonly templates: number;
  readonly maxConcurrent: string;
  /** The default is the group's default, none. */
  readonly maxFailures?: string;
  /** Selects clusters that never become ready. The default is none. */
  readonly failing?: (cluster: string) => boolean;
  /** The default is `bench`. */
  readonly namespace?: string;
  /** More fields of the group's rollout. */
  readonly rollout?: Readonly<Record<string, unknown>>;
  /** The path of its templates, which may contain expressions. The default is a folder for each template. */
  readonly path?: string;
  /** The selector of its clusters. The default is all. */
  readonly clusters?: unknown;
  /** The start time. The default is now. */
  readonly from?: Date;
}

/** A call of the planner; undefined means any cluster. */
export type PlannerCall = (clusters?: ReadonlySet<string>) => Promise<void>;

/** The planner of one group. Renderers and workers are simulated by the rows that they write. */
export class PlannedGroup {
  readonly #table: Table;
  readonly #ports: GivenPorts;
  readonly #group: GroupShape;
  readonly #owner: Owner;
  readonly #sent: Message[] = [];
  readonly #namespace: string;
  #now: Date;

  /** @param ports - `heard` receives the messages of the planner. */
  constructor(
    group: GroupShape,
    {
      table,
      blobs,
      heard = () => {},
    }: { readonly table: Table; readonly blobs: BlobStore; readonly heard?: (message: Message) => void },
  ) {
    this.#group = group;
    this.#namespace = group.namespace ?? "bench";
    this.#now = group.from ?? new Date();
    this.#owner = { namespace: this.#namespace, kind: "SyncGroup", name: group.name };
    this.#table = table;
    this.#ports = {
      table,
      blobs,
      sender: {
        send: async (messages) => {
          for (const message of messages) heard(message);
          this.#sent.push(...messages);
        },
      },
      clock: { now: () => this.#now },
      ids: randomIds,
      log: { info: () => {}, warn: () => {}, error: () => {} },
      installation: "bench",
    };
  }

  /** Creates the missing clusters and the group. */
  async create(clusters: readonly string[]): Promise<void> {
    for (const part of inParts(clusters, 40)) await this.#table.write(part.map((name) => ({ put: fleetRow(name) })));
    const listed = [keys.owner(this.#owner), keys.sourceEntry({ namespace: this.#namespace, name: "app" })];
    await this.#table.write([
      fleetVersionUpdate("c"),
      { put: this.#groupRow() },
      ...listed.map((key) => ({ put: { ...key, type: "Directory" as const, schema: rowSchema, version: 1 } })),
    ]);
  }

  /** Gives clusters other values or labels. */
  async setValues(clusters: readonly string[], values: FleetRow["values"], labels?: FleetRow["labels"]): Promise<void> {
    for (const name of clusters) {
      const row = await this.#table.get(keys.fleet(name));
      if (row === undefined) throw new Error(`there is no ${name}`);
      const put: FleetRow = { ...row, values, ...defined({ labels }) };
      await writeWithFleet(this.#table, [{ put }]);
    }
  }

  /** Runs the planner without a deadline. */
  call: PlannerCall = async (clusters) => {
    const until = new Date(this.#now.getTime() + 60_000);
    await planOwner(this.#owner, { until, ...(clusters === undefined ? {} : { clusters }) }, this.#ports);
  };

  anHourLater(): void {
    this.#now = new Date(this.#now.getTime() + 3_600_000);
  }

  /** Takes a rollout through the group. @param until - stops after this number of clusters. */
  async rollOut(rollout: string, call: PlannerCall, { until = Number.POSITIVE_INFINITY } = {}): Promise<void> {
    await this.#setSource(rollout);
    await call(new Set());
    for (let worked = 0; worked < until; ) {
      const renders = this.#sent.filter((message) => message.to === "render");
      const applies = new Set(this.#sent.flatMap((message) => (message.to === "apply" ? (message.cluster ?? []) : [])));
      this.#sent.length = 0;
      for (const { input } of renders) await this.#render(input);
      if (renders.length > 0) await call(new Set());
      for (const reported of inParts([...applies], clustersPerMessage)) {
        await this.#work(reported);
        await call(new Set(reported));
        worked += reported.length;
        if (worked >= until) break;
      }
      const rolloutState = await this.#table.get(keys.rolloutState(this.#owner));
      if (rolloutState !== undefined && isThrough(rolloutState)) return;
      const isWaiting = renders.length + applies.size === 0;
      if (isWaiting && !(await this.#passGates(rolloutState, call)))
        throw new Error(`the rollout stands still: ${JSON.stringify(rolloutState?.stages)}`);
    }
  }

  /** People approve what waits for them, and bakes come to their ends. @returns false when no gate is open. */
  async #passGates(rolloutState: RolloutStateRow | undefined, call: PlannerCall): Promise<boolean> {
    const refs = (rolloutState?.stages ?? []).flatMap(({ updatingTo }) => updatingTo ?? []);
    const stageRuns = await this.#table.getMany(refs.map((stageRun) => keys.stageRun(this.#owner, stageRun)));
    const open = stageRuns.filter(({ phase }) => phase === "Gated" || phase === "Baking");
    for (const stageRun of open) {
      if (stageRun.phase === "Gated") await this.#approve(stageRun);
      else this.anHourLater();
      await call(new Set());
    }
    return open.length > 0;
  }

  async #approve({ stage, planHash: plan = "" }: StageRunRow): Promise<void> {
    const row = await this.#table.get(keys.object(this.#namespace, "SyncGroup", this.#group.name));
    if (row?.type !== "SyncGroup") throw new Error("the group is gone");
    const { approvals = [] } = row.operations;
    const act = { by: "arn:aws:sts::111122223333:assumed-role/sre/ana", at: this.#now.toISOString() };
    const approval = { ...act, number: approvals.length + 1, stage, plan };
    const operations = { ...row.operations, approvals: [...approvals, approval] };
    const put: SyncGroupRow = { ...row, operations, version: row.version + 1 };
    await this.#table.write([{ put }]);
  }

  #groupRow(): Row {
    const { name, templates, maxConcurrent, maxFailures, path, rollout = {}, clusters = { all: true } } = this.#group;
    const spec = syncGroupSpec.parse({
      clusters,
      // Each group has its own folders, so that no other group has requested its renderings.
      templates: Array.from({ length: templates }, (_, index) => ({
        name: `t${index}`,
        source: "app",
        path: path ?? `${name}/t${index}`,
      })),
      rollout: { maxConcurrent, ...defined({ maxFailures }), ...rollout },
    });
    const more = { name, uid: name, version: 1, spec, status: { conditions: [] } };
    const key = keys.object(this.#namespace, "SyncGroup", name);
    return { ...key, ...objectParts(this.#namespace), type: "SyncGroup", ...more };
  }

  async #setSource(rollout: string): Promise<void> {
    const key = keys.object(this.#namespace, "Source", "app");
    const before = await this.#table.get(key);
    const revision = `main@sha1:${digestOf(rollout).slice(-40)}`;
    const storedAt = this.#now.toISOString();
    const about = { sizeBytes: 1, files: 1, storedAt, subject: rollout, author: "Ana <ana@acme.example>" };
    const artifact = { revision, digest: digestOf(rollout), ...about };
    const spec = sourceSpec.parse({ git: { url: "https://git.example/app" } });
    const version = (before?.version ?? 0) + 1;
    const more = {
      name: "app",
      uid: "app",
      version,
      spec,
      status: { artifact, observedGeneration: 1, conditions: [] },
    };
    await this.#table.write([{ put: { ...key, ...objectParts(this.#namespace), type: "Source", ...more } }]);
  }

  async #render(input: string): Promise<void> {
    const row = await this.#table.get(keys.rendering(input));
    if (row?.state !== "Pending") return;
    const { dueShard: _shard, dueKey: _key, waiting: _waiting, ...rest } = row;
    const doneAt = this.#now.toISOString();
    const done = { ...rest, state: "Done", digest: digestOf(input), objects: 1, doneAt, version: row.version + 1 };
    await this.#table.write([{ put: done, when: { version: row.version } }]);
  }

  /** Writes the reports of workers that found everything ready. */
  async #work(clusters: readonly string[]): Promise<void> {
    const { name, templates, failing = () => false } = this.#group;
    const syncs = Array.from({ length: templates }, (_, index) => `${name}.t${index}`);
    const desired = clusters.flatMap((cluster) => syncs.map((sync) => keys.sync(cluster, this.#namespace, sync)));
    const rows = await this.#table.getMany(desired);
    const done = rows.map((row) => worked(row, { now: this.#now, phase: failing(row.cluster) ? "Failed" : "Ready" }));
    for (const part of inParts(done, 90))
      await this.#table.write(part.map((row) => ({ put: row, when: { version: row.version - 1 } })));
  }
}

function objectParts(namespace: string) {
  return {
    schema: rowSchema,
    namespace,
    labels: {},
    annotations: {},
    generation: 1,
    createdAt: "2026-01-01T00:00:00.000Z",
    operations: {},
  };
}

function fleetRow(name: string): Row {
  const more = { name, uid: name, labels: { ring: "all" }, values: {} };
  return { ...keys.fleet(name), type: "Fleet", schema: rowSchema, version: 1, ...more };
}

function worked(row: SyncRow, { now, phase }: { readonly now: Date; readonly phase: "Ready" | "Failed" }): SyncRow {
  const at = now.toISOString();
  const { attempt, revision, renderDigest = "" } = row.desired;
  const applied = { renderDigest, revision, attempt, at };
  const said = phase === "Ready" ? { applied } : { phase, reason: "ImagePullBackOff", message: "Pod a-1 of 3" };
  const asked = defined({ handledReconcile: row.reconcile });
  const observed = observedOf({ attempt, startedAt: at, since: at, at, ...said, ...asked });
  return { ...row, observed, version: row.version + 1, stateSk: stateIndex.sk(phase, row) };
}
