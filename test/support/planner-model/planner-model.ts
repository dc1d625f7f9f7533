import type { ApiPorts } from "#functions/api/request/api-ports.ts";
import { reportChanges } from "#functions/report/report-changes.ts";
import { reportOf } from "#functions/rollout/call/plan-batch.ts";
import { planOwner } from "#functions/rollout/call/plan-owner.ts";
import { claimDue } from "#functions/tick/claim-due.ts";
import { watchAlarms } from "#functions/tick/watch-alarms.ts";
import { forgetSyncs } from "#shared/adapters/forget-syncs.ts";
import { randomIds } from "#shared/adapters/system.ts";
import { defined } from "#shared/base/defined.ts";
import { digestOf } from "#shared/base/digest.ts";
import type { RolloutStrategy } from "#shared/fleet/kinds/sync-group.ts";
import { describeRevisions, desiredPlan } from "#shared/fleet/rollout/desired-plan.ts";
import { templatesKept } from "#shared/fleet/rollout/guarded-templates.ts";
import { countHeld, frozenIn } from "#shared/fleet/rollout/holding.ts";
import { barredIn, rejectedNewest } from "#shared/fleet/rollout/order.ts";
import { isStalled, stageRunKey, waitingOf } from "#shared/fleet/rollout/stage-runs.ts";
import { dueAtOf, later } from "#shared/fleet/rows/due.ts";
import type { FreezeState } from "#shared/fleet/rows/freezes-row.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { FleetRow, SourceRow } from "#shared/fleet/rows/object-rows.ts";
import type { RenderingRow, StageRunRef, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isOutstanding, type SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Message, RolloutMessage } from "#shared/messages.ts";
import { healthyInstallation } from "#test/support/healthy-installation.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { AgeWatch, isFrozenBake } from "#test/support/planner-model/age-watch.ts";
import { Crash, type Disturbance, DisturbedPorts, lagging } from "#test/support/planner-model/disturbed-ports.ts";
import { type Cordoned, isCordonedAt } from "#test/support/planner-model/model-cordons.ts";
import { ModelPeople } from "#test/support/planner-model/model-people.ts";
import { ModelServers } from "#test/support/planner-model/model-servers.ts";
import { isOpenAt } from "#test/support/planner-model/model-windows.ts";
import { ModelWorkers, type Outcome } from "#test/support/planner-model/model-workers.ts";
import { PlannerWatch, WatchedTable } from "#test/support/planner-model/planner-watch.ts";
import { owner, PlannerWorld, silentLog, silentMetrics } from "#test/support/planner-world.ts";

export interface Delivery {
  readonly pick: number;
  /** The observation of a worker, when the message is for one. */
  readonly outcome: Outcome;
  /** When the worker writes its observation. With `never` it dies first. */
  readonly lands: "now" | "later" | "never";
  /** The renderer's result. With `never` it begins and does not answer. */
  readonly rendering: "done" | "failed" | "never";
  readonly planner: Disturbance;
}

/** A freeze of every cluster, or of those with some labels, with an end or until it is thawed. */
export interface ModelFreeze {
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly seconds?: number | undefined;
}

/** A revision that cannot be rendered. */
export const brokenRollout = "broken";

/** The time limit of a call of the planner. */
export const callSeconds = 60;

/** More clusters than the scenarios that are played by the hundred have. */
export const fewClusters = 50;

const undisturbed: Delivery = { pick: 0, outcome: "Ready", lands: "now", rendering: "done", planner: {} };

/** The planner may have read this at a moment. */
interface Moment {
  readonly at: Date;
  readonly windows: ReturnType<ModelPeople["windows"]["now"]>;
  readonly cordons: Cordoned;
}

/** Seconds by which the clocks of the API and of the workers are ahead of the planner's. */
export interface Ahead {
  readonly people: number;
  readonly workers: number;
}

const together: Ahead = { people: 0, workers: 0 };

interface Queued {
  readonly message: Message;
  readonly from: number;
}

/**
 * The whole path around the planner in one process: the real planner, tick and report over one watched table, and a
 * queue, workers, renderer and clusters that behave as the test says, however bad.
 */
export class PlannerModel {
  readonly world: PlannerWorld;
  readonly servers = new ModelServers();
  readonly watch: PlannerWatch;
  readonly table: WatchedTable;
  readonly workers: ModelWorkers;
  readonly people: ModelPeople;
  queue: Queued[] = [];
  /** Until the disturbances end. */
  ahead = together;
  /** The size of the fleet, in small fleets. */
  readonly #size: number;
  #older = new MemoryTable();
  /** The moment at which the planner's call in progress began. */
  #call: Moment | undefined;

  /** @param clusters - about the number of clusters. */
  constructor(clusters = fewClusters) {
    this.#size = Math.max(1, Math.ceil(clusters / fewClusters));
    this.watch = new PlannerWatch(owner, this.servers, {
      now: () => this.world.now,
      mayStart: (ring) => this.#mayStart(ring),
      isCordoned: (cluster) => this.#isCordoned(cluster),
      alarms: () => this.people.alarms,
    });
    this.table = new WatchedTable(this.watch, this.#size === 1 ? {} : { pageItems: 1000 });
    this.world = new PlannerWorld({ table: this.table, blobs: new MemoryBlobStore() });
    this.workers = new ModelWorkers({
      owner,
      table: this.table,
      servers: this.servers,
      now: () => this.#nowAhead("workers"),
      send: (messages) => this.send(messages),
      pruned: (prune) => this.watch.guard.pruned(prune),
    });
    this.people = new ModelPeople({
      ports: this.apiPorts(),
      rolloutState: () => this.watch.rolloutState(),
      stageRuns: () => this.world.stageRuns(),
      clusters: () => this.world.rows<FleetRow>("Fleet"),
      guardApproved: (change) => this.watch.guard.approved(change),
    });
  }

  /** The ports of the functions of the API, whose messages go to the queue. */
  apiPorts(): ApiPorts {
    const { blobs } = this.world;
    const clock = { now: () => this.#nowAhead("people") };
    const sender = { send: async (messages: readonly Message[]) => this.send(messages) };
    return {
      ...healthyInstallation,
      table: this.table,
      blobs,
      sender,
      clock,
      ids: randomIds,
      log: silentLog,
      installation: "test",
    };
  }

  #nowAhead(whose: keyof Ahead): Date {
    return new Date(this.world.now.getTime() + this.ahead[whose] * 1000);
  }

  /** A call of the planner may have read the windows as they were when it began. */
  #mayStart(ring: string | undefined): boolean {
    const moments = this.#moments();
    return moments.some(({ windows }) => moments.some(({ at }) => isOpenAt(windows, ring, at.getTime())));
  }

  /** Likewise for cordons. */
  #isCordoned(cluster: string): boolean {
    return this.#moments().every(({ at, cordons }) => isCordonedAt(cordons, cluster, at));
  }

  #moments(): readonly Moment[] {
    const now = this.#now();
    return [now, this.#call ?? now];
  }

  #now(): Moment {
    return { at: this.world.now, windows: this.people.windows.now(), cordons: this.people.cordons.now() };
  }

  send(messages: readonly Message[]): void {
    for (const message of messages) {
      this.queue.push({ message, from: this.world.now.getTime() + (message.delaySeconds ?? 0) * 1000 });
    }
  }

  /** Takes a message that may be delivered now out of the queue. */
  take(pick: number): Message | undefined {
    const ready = this.queue.filter((queued) => queued.from <= this.world.now.getTime());
    const chosen = ready[pick % Math.max(1, ready.length)];
    if (chosen !== undefined) this.queue.splice(this.queue.indexOf(chosen), 1);
    return chosen?.message;
  }

  /** More messages of the queue, which a large fleet delivers together. */
  #others<To extends Message["to"]>(to: To): readonly Extract<Message, { to: To }>[] {
    const now = this.world.now.getTime();
    const same = this.queue.filter(({ message, from }) => message.to === to && from <= now).slice(0, this.#size - 1);
    const taken = new Set(same);
    this.queue = this.queue.filter((queued) => !taken.has(queued));
    return same.map(({ message }) => message as Extract<Message, { to: To }>);
  }

  async deliver(delivery: Delivery): Promise<boolean> {
    const message = this.take(delivery.pick);
    if (message === undefined) return false;
    if (message.to === "rollout") await this.plan(delivery.planner, [message, ...this.#others("rollout")]);
    if (message.to === "render") await this.render(message.input, delivery.rendering);
    if (message.to === "report")
      await reportChanges([message, ...this.#others("report")], {
        ...this.#ports({}),
        events: this.world.table,
        metrics: silentMetrics,
        log: silentLog,
      });
    if (message.to === "apply" && message.cluster !== undefined) {
      await this.workers.begin(message.cluster, delivery.outcome);
      if (delivery.lands === "now") await this.workers.land(this.workers.flights.length - 1);
      if (delivery.lands === "never") this.workers.crash(this.workers.flights.length - 1);
    }
    return true;
  }

  /** Runs the planner once. A run that is cut short leaves its messages in the queue. */
  async plan(
    disturbance: Disturbance,
    messages: readonly RolloutMessage[] = [{ to: "rollout", owner }],
  ): Promise<void> {
    const until = new Date(this.world.now.getTime() + callSeconds * 1000);
    const [desired, { length: queued }] = [this.#desired(), this.queue];
    const endCall = this.watch.beginCall();
    const outer = this.#call;
    this.#call = outer ?? this.#now();
    try {
      await planOwner(
        owner,
        { until, ...reportOf(messages) },
        {
          ...this.#ports(disturbance),
          blobs: this.world.blobs,
          ids: randomIds,
          log: silentLog,
          installation: "test",
        },
      );
      // Nothing has changed meanwhile, and the planner did not ask for another run.
      const others = this.queue.slice(queued).filter(({ message }) => message.to === "rollout");
      if (desired !== undefined && desired.hash === this.#desired()?.hash && others.length === 0)
        this.watch.skipped.note(desired);
    } catch (error) {
      if (!(error instanceof Crash)) throw error;
      this.send(messages);
    } finally {
      endCall();
      this.#call = outer;
    }
  }

  #desired() {
    const group = this.watch.group();
    if (group === undefined) return undefined;
    const rolloutState = this.watch.rolloutState();
    const rollouts = new Map(this.world.rollouts().map((row) => [row.number, row]));
    const kept =
      rolloutState === undefined ? [] : templatesKept({ row: group, rolloutState, rollouts, now: this.world.now });
    const sources = new Map(this.world.rows<SourceRow>("Source").map((row) => [row.name, row]));
    const desired = desiredPlan(group, sources, kept);
    return desired.ok ? { hash: desired.plan.planHash, revision: describeRevisions(desired.plan) } : undefined;
  }

  async render(input: string, found: Delivery["rendering"]): Promise<void> {
    const row = await this.table.get(keys.rendering(input));
    if (row === undefined) return;
    const outcome = isBroken(row) ? "failed" : found;
    if (row.state === "Pending" && outcome === "never") {
      const begunAt = row.begunAt ?? this.world.now.toISOString();
      const begun: RenderingRow = { ...row, begunAt, version: row.version + 1 };
      await this.table.write([{ put: begun, when: { version: row.version } }]);
      return;
    }
    const doneAt = this.world.now.toISOString();
    if (row.state === "Done") {
      const kept: RenderingRow = { ...row, keptAt: doneAt, version: row.version + 1 };
      await this.table.write([{ put: kept, when: { version: row.version } }]);
      this.send([{ to: "rollout", owner, clusters: [] }]);
    }
    if (row.state === "Pending") {
      const { dueShard: _shard, dueKey: _key, waiting: _waiting, ...rest } = row;
      const failure = { code: "RenderFailed", message: "no kind", permanent: true };
      const next: RenderingRow = {
        ...rest,
        version: row.version + 1,
        ...(outcome === "failed"
          ? { state: "Failed", failure }
          : { state: "Done", digest: digestOf(`${row.artifactDigest}${row.path}`), objects: 1, doneAt }),
      };
      await this.table.write([{ put: next, when: { version: row.version } }]);
    }
    this.send((row.waiting ?? []).map((waiting) => ({ to: "rollout", owner: waiting, clusters: [] })));
  }

  /** @param index - whether the index shows the table as it is, or as it was at the tick before. */
  async tick(index: "current" | "old"): Promise<void> {
    const ports = this.#ports({});
    const table = index === "current" ? this.table : lagging(this.table, this.#older);
    const { stageRuns } = await claimDue({ ...ports, table, log: silentLog, metrics: silentMetrics });
    await watchAlarms(stageRuns, { ...ports, alarms: this.people.alarms, log: silentLog, metrics: silentMetrics });
  }

  /** Remembers the state that a lagging index shows until the next call. */
  async remember(): Promise<void> {
    const older = new MemoryTable();
    for (const row of this.table.all()) await older.write([{ put: row }]);
    this.#older = older;
  }

  async revise(commit: string, rollout: string): Promise<void> {
    await this.world.setSource(commit, rollout);
    this.send([{ to: "rollout", owner, clusters: [] }]);
  }

  /** @param freeze - without labels it covers every cluster. */
  async freeze({ name, labels, seconds }: ModelFreeze): Promise<void> {
    const { now } = this.world;
    const { freezes, lifted } = await this.#freezeState();
    const clusters = labels && { text: JSON.stringify(labels), selector: { matchLabels: labels } };
    const until = seconds === undefined ? undefined : later(now, seconds);
    const freeze = { name, by: "ana", at: now.toISOString(), reason: "model", ...defined({ clusters, until }) };
    await this.world.setFreezes({ freezes: [...freezes.filter((one) => one.name !== name), freeze], lifted });
    this.#reportFreezes();
  }

  async thaw(name: string): Promise<void> {
    const { freezes, lifted } = await this.#freezeState();
    const gone = freezes.find((one) => one.name === name);
    if (gone === undefined) return;
    const ended = { ...gone, lifted: { by: "bo", at: this.world.now.toISOString() } };
    await this.world.setFreezes({ freezes: freezes.filter((one) => one !== gone), lifted: [...lifted, ended] });
    this.#reportFreezes();
  }

  async #thawAll(): Promise<void> {
    for (const { name } of (await this.#freezeState()).freezes) await this.thaw(name);
  }

  async #freezeState(): Promise<FreezeState> {
    return (await this.table.get(keys.freezeState)) ?? { freezes: [], lifted: [] };
  }

  /** Sends the hints that the API sends. */
  #reportFreezes(): void {
    const clusters = this.world.rows<FleetRow>("Fleet").map(({ name: cluster }) => ({ to: "apply", cluster }) as const);
    this.send([{ to: "rollout", owner }, ...clusters]);
  }

  async setGroup(strategy: Partial<RolloutStrategy>, templates: readonly unknown[], guard?: unknown): Promise<void> {
    await this.world.setGroup(strategy, templates, { selector: { matchLabels: { fleet: "web" } } }, guard);
    this.send([{ to: "rollout", owner }]);
  }

  async setCluster(
    name: string,
    { ring, uid, ...labels }: { ring: string; fleet: string; flavour?: string; uid: string },
  ): Promise<void> {
    await this.world.addCluster(name, ring, { uid, labels });
    this.send([{ to: "rollout", owner }]);
  }

  /** Deletes a Cluster without its objects as the API does: first its row, then its assignments. */
  async unregister(name: string): Promise<void> {
    await this.people.forget(name);
    await this.world.removeCluster(name);
    await forgetSyncs(this.#ports({}), name, "try again");
    this.send([{ to: "rollout", owner }]);
  }

  /** Accepts another cluster under a name as the API does: first it forgets the assignments, then it changes the uid. */
  async accept(name: string, cluster: Parameters<PlannerModel["setCluster"]>[1]): Promise<void> {
    await forgetSyncs(this.#ports({}), name, "try again");
    await this.setCluster(name, cluster);
  }

  isGone(): boolean {
    return this.world.rows("SyncGroup").length === 0;
  }

  /** Whether everything is done, or each stage run in progress is stalled or waits for frozen clusters only. */
  isIdle(): boolean {
    const [rolloutState, group] = [this.watch.rolloutState(), this.watch.group()];
    if (group?.dueKey !== undefined) return false;
    if (rolloutState === undefined || group === undefined)
      return group === undefined && rolloutState?.dueKey === undefined;
    if (rolloutState.jobs.length + this.watch.slots().length > 0) return false;
    const updatingTo = rolloutState.stages.flatMap((stage) => stage.updatingTo ?? []);
    // A reconcile waits for everything that a stage run waits for.
    if (rolloutState.checking !== undefined && updatingTo.every((stageRun) => this.#isStalled(stageRun))) return false;
    if (rolloutState.dueKey !== undefined && dueAtOf(rolloutState.dueKey) <= this.world.now.toISOString()) return false;
    // Older stage runs of an owner in deletion start no further cluster, and yield to the deletion behind a freeze.
    const isLast = ({ rollout }: StageRunRef) =>
      group.operations.deletion !== undefined && rollout === rolloutState.last;
    const isGivingWay = (stageRun: StageRunRef) => !isLast(stageRun) && updatingTo.some(isLast);
    // A stage run that waits for a stage put before it is idle when that stage is.
    const begun = rolloutState.stages.flatMap(({ updatingTo: stageRun, ahead }) =>
      stageRun === undefined || ahead === true ? [] : stageRun,
    );
    const isStill = begun.every(
      (stageRun) => this.#isStalled(stageRun) || this.#isFrozen(stageRun) || isGivingWay(stageRun),
    );
    // Nothing newer comes to the stage before when it went back by itself, or while no cluster is selected.
    const isEmpty = rolloutState.stages.every(({ members }) => members === 0);
    const isEnd = isEmpty || barredIn(rolloutState) !== undefined || rejectedNewest(rolloutState) !== undefined;
    if (begun.length === 0 && updatingTo.length > 0 && !isEnd) return false;
    const stopped = rolloutState.stages.some(({ failedCatchUps }) => failedCatchUps > 0);
    const frozen = countHeld(rolloutState.catchUpsHeld ?? { holds: [] }, "freeze");
    const isServed = rolloutState.catchUps.waiting === frozen || stopped || group.operations.deletion !== undefined;
    if (!isStill || !isServed) return false;
    return this.watch.rowsOf<SyncRow>("SyncOnCluster").every((row) => !isOutstanding(row) || isPaused(row));
  }

  #stageRun(updatingTo: StageRunRef): StageRunRow | undefined {
    return this.world.stageRuns().find((one) => stageRunKey(one) === stageRunKey(updatingTo));
  }

  #isStalled(updatingTo: StageRunRef): boolean {
    const stageRun = this.#stageRun(updatingTo);
    return stageRun !== undefined && isStalled(stageRun);
  }

  /** A freeze holds everybody who is left, and nobody else waits; or it has stopped a bake. */
  #isFrozen(updatingTo: StageRunRef): boolean {
    const stageRun = this.#stageRun(updatingTo);
    if (stageRun !== undefined && isFrozenBake(stageRun)) return true;
    const frozen = stageRun === undefined ? 0 : frozenIn(stageRun).length;
    return stageRun !== undefined && frozen > 0 && waitingOf(stageRun) === frozen && stageRun.counts.Assigned === 0;
  }

  /**
   * No more disturbances, but for a freeze, if any: messages arrive, clusters answer, time passes. @returns whether it came
   * to rest.
   */
  async calm(freeze?: ModelFreeze): Promise<boolean> {
    this.#repair();
    await this.#thawAll();
    if (freeze !== undefined) await this.freeze(freeze);
    await this.people.makePeace();
    const ages = new AgeWatch();
    for (let round = 0; round < 120; round++) {
      await this.#deliverAll();
      await this.people.approveAll();
      await this.#deliverAll();
      const isOver = this.isIdle() && !(await this.people.areAsked());
      const { now } = this.world;
      ages.check(
        { now, rolloutState: this.watch.rolloutState(), group: this.watch.group(), stageRuns: this.world.stageRuns() },
        isOver,
      );
      if (isOver) return true;
      this.world.advanceClock(60);
      await this.tick("current");
    }
    return false;
  }

  /** An hour without disturbances and freezes in which nobody says anything: whatever else people have stopped stays so. */
  async rest(): Promise<void> {
    this.#repair();
    await this.#thawAll();
    for (let round = 0; round < 60; round++) {
      await this.#deliverAll();
      this.world.advanceClock(60);
      await this.tick("current");
    }
    await this.#deliverAll();
  }

  /** Every cluster answers, no worker hangs, and all clocks agree. */
  #repair(): void {
    this.ahead = together;
    this.workers.flights.length = 0;
    this.workers.away.clear();
    this.workers.busy.clear();
  }

  async #deliverAll(): Promise<void> {
    for (let count = 0; count < 3000 * this.#size && (await this.deliver(undisturbed)); count++);
  }

  /** The state after a run, without times, counters and clusters that are no longer selected. */
  summary(): unknown {
    const syncs = this.world
      .rows<SyncRow>("SyncOnCluster")
      .filter((row) => row.desired.action === "apply")
      .map(({ cluster, name, desired, observed }) => ({
        cluster,
        name,
        revision: desired.revision,
        desired: desired.renderDigest,
        holds: observed?.applied?.renderDigest,
        current: observed?.attempt === desired.attempt,
        phase: observed?.phase,
      }));
    const [group] = this.watch.rowsOf("SyncGroup") as unknown as { status: Record<string, unknown> }[];
    const { state, clusters, revision } = group?.status ?? {};
    // A group without clusters takes nothing, and keeps the revision that it had.
    return { syncs, status: { state, clusters, ...(state === "NoClusters" ? {} : { revision }) } };
  }

  #ports(disturbance: Disturbance) {
    const sender = { send: async (messages: readonly Message[]) => this.send(messages) };
    const most = { mostCalls: 3000 * this.#size, ...disturbance };
    const { table, sender: disturbed } = new DisturbedPorts({ table: this.table, sender }, most);
    return { table, sender: disturbed, clock: { now: () => this.world.now } };
  }
}

export function isBroken({ artifactDigest }: RenderingRow): boolean {
  return artifactDigest === digestOf(brokenRollout);
}

/** It waits for the planner's word, which a stage that stands still keeps from it. */
function isPaused({ paused, observed, desired }: SyncRow): boolean {
  return paused !== undefined || (observed?.attempt === desired.attempt && observed.phase === "Reachable");
}
