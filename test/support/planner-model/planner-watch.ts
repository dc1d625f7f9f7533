import { expect } from "vitest";
import type { GuardSpec } from "#shared/fleet/kinds/guard-spec.ts";
import { resolveCount } from "#shared/fleet/kinds/quantities.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import { promotionOf } from "#shared/fleet/rollout/gate-acts.ts";
import { guardSpecOf } from "#shared/fleet/rollout/guard.ts";
import { frozenIn, heldIn } from "#shared/fleet/rollout/holding.ts";
import { stageRunKey } from "#shared/fleet/rollout/stage-runs.ts";
import { keys, type Owner, syncName } from "#shared/fleet/rows/keys.ts";
import type { FleetRow, OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import {
  type CatchUpRow,
  type RolloutRow,
  type RolloutStateRow,
  type SlotRow,
  type StageRunRef,
  type StageRunRow,
  type TargetRow,
  type TargetState,
  targetStates,
} from "#shared/fleet/rows/rollout-rows.ts";
import { keyText, type Row } from "#shared/fleet/rows/row.ts";
import type { Observed, Phase, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { phaseTallies } from "#shared/fleet/sync/tally.ts";
import type { Write } from "#shared/ports.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { GuardWatch } from "#test/support/planner-model/guard-watch.ts";
import type { ModelAlarms } from "#test/support/planner-model/model-alarms.ts";
import type { ModelServers } from "#test/support/planner-model/model-servers.ts";
import { PeopleWatch } from "#test/support/planner-model/people-watch.ts";
import { checkRestored, checkTakenAway, RestoredWatch } from "#test/support/planner-model/restored-watch.ts";
import { SkippedWatch } from "#test/support/planner-model/skipped-watch.ts";
import { type Change, StageWatch } from "#test/support/planner-model/stage-watch.ts";
import { TakeBackWatch } from "#test/support/planner-model/take-back-watch.ts";

interface Surroundings {
  readonly now: () => Date;
  /** Whether windows let changes of a cluster of this ring start in the present call of the planner. */
  readonly mayStart: (ring: string | undefined) => boolean;
  /** Whether a cordon keeps everything new from a cluster in the present call of the planner. */
  readonly isCordoned: (cluster: string) => boolean;
  readonly alarms: () => ModelAlarms;
}

/**
 * Checks the promises of the design at every write, in the order of effects. It keeps a copy of the rows, and counts rows
 * where the planner keeps numbers. The API servers count the clusters that are changing.
 */
export class PlannerWatch {
  readonly #owner: Owner;
  readonly #servers: ModelServers;
  readonly #stages = new StageWatch();
  readonly restored = new RestoredWatch();
  readonly skipped = new SkippedWatch();
  readonly guard = new GuardWatch();
  readonly #people = new PeopleWatch();
  readonly #takesBack = new TakeBackWatch();
  readonly #surroundings: Surroundings;
  readonly #rows = new Map<string, Row>();
  readonly #byType = new Map<string, Map<string, Row>>();
  /** The number of targets in each state, by stage run. */
  readonly #targets = new Map<string, Map<TargetState, number>>();
  /** The stages before a stage, by rollout and stage. */
  readonly #before = new Map<string, Set<string>>();
  /** The last observations of Syncs that were forgotten with their Cluster. A planner that read them before may use them. */
  readonly #forgotten = new Map<string, Observed>();

  /** The number of writes, that of each Sync's last report, and those at which the calls in progress began. */
  #written = 0;
  readonly #reports = new Map<string, number>();
  readonly #calls = new Set<{ readonly from: number; readonly guard: GuardSpec | undefined }>();

  constructor(owner: Owner, servers: ModelServers, surroundings: Surroundings) {
    this.#owner = owner;
    this.#servers = servers;
    this.#surroundings = surroundings;
  }

  /** A call of the planner begins: it may have read none of the reports that follow. @returns what ends it. */
  beginCall(): () => void {
    const group = this.group();
    const call = { from: this.#written, guard: group && guardSpecOf(group) };
    this.#calls.add(call);
    return () => this.#calls.delete(call);
  }

  /** The guard of the spec, when it was the same when each call in progress began. */
  #steadyGuard(): GuardSpec | undefined {
    const group = this.group();
    const guard = group && guardSpecOf(group);
    const isSteady = [...this.#calls].every((call) => JSON.stringify(call.guard) === JSON.stringify(guard));
    return isSteady ? guard : undefined;
  }

  written(writes: readonly Write[]): void {
    this.#written++;
    const changes = writes.flatMap((write) => this.#apply(write));
    this.#noteBound();
    const rolloutState = this.rolloutState();
    this.restored.written(changes, this);
    this.skipped.written(changes);
    this.guard.written(changes, this.#watched());
    const sizeOf = (stageRun: StageRunRef) => this.#stageRun(stageRun)?.size;
    this.#stages.written(changes, { rolloutState, group: this.group(), sizeOf, servers: this.#servers });
    this.#people.written(changes, this.#watched());
    this.#takesBack.written(changes, this.#watched());
    const ids = new Set(rolloutState?.stages.map(({ name }) => this.#stages.idOf(name)));
    for (const before of this.#before.values()) for (const id of before) if (!ids.has(id)) before.delete(id);
    for (const { before, after } of changes) {
      if (before === undefined && after?.type === "StageRun") this.#noteOrder(after as StageRunRow, rolloutState);
      if (after?.type === "Target") this.#checkTarget(after as TargetRow);
      if (after?.type === "StageRun") this.#checkStageRun(after as StageRunRow, before as StageRunRow | undefined);
      if (after?.type === "RolloutState")
        this.#checkRolloutState(before as RolloutStateRow | undefined, after as RolloutStateRow);
      if (after?.type !== "SyncOnCluster") continue;
      const sync = after as SyncRow;
      if ((before as SyncRow | undefined)?.desired.attempt === sync.desired.attempt) continue;
      this.#checkAssignment(before as SyncRow | undefined, sync, { rolloutState, changes });
    }
  }

  #watched() {
    return {
      owner: this.#owner,
      now: this.#surroundings.now(),
      group: this.group(),
      rowsOf: this.rowsOf.bind(this),
      idOf: this.#stages.idOf.bind(this.#stages),
      alarms: this.#surroundings.alarms(),
    };
  }

  rowsOf<R extends Row>(type: R["type"]): R[] {
    return [...(this.#byType.get(type)?.values() ?? [])] as R[];
  }

  rolloutState(): RolloutStateRow | undefined {
    return this.rowsOf<RolloutStateRow>("RolloutState")[0];
  }

  group(): OwnerRow | undefined {
    const { namespace, kind, name } = this.#owner;
    return this.#rows.get(keyText(keys.object(namespace, kind, name))) as OwnerRow | undefined;
  }

  slots(): SlotRow[] {
    return this.rowsOf<SlotRow>("Slot");
  }

  target(stageRun: StageRunRef, cluster: string): TargetRow | undefined {
    return this.#rows.get(keyText(keys.target(this.#owner, stageRun, cluster))) as TargetRow | undefined;
  }

  #stageRun(stageRun: StageRunRef): StageRunRow | undefined {
    return this.#rows.get(keyText(keys.stageRun(this.#owner, stageRun))) as StageRunRow | undefined;
  }

  #apply(write: Write): Change[] {
    if ("check" in write) return [];
    const key = keyText("put" in write ? write.put : "delete" in write ? write.delete : write.update);
    const before = this.#rows.get(key);
    if (before?.type === "Target") this.#count(before as TargetRow, -1);
    if ("delete" in write) {
      this.#rows.delete(key);
      this.#byType.get(before?.type ?? "")?.delete(key);
      return [{ before, after: undefined }];
    }
    const after = "put" in write ? write.put : ({ ...before, ...write.update, ...write.set } as Row);
    this.#rows.set(key, after);
    if (after.type === "Target") this.#count(after as TargetRow, 1);
    const ofType = this.#byType.get(after.type) ?? new Map<string, Row>();
    this.#byType.set(after.type, ofType.set(key, after));
    const observed = after.type === "SyncOnCluster" ? (before as SyncRow | undefined)?.observed : undefined;
    if (after.type === "SyncOnCluster" && (after as SyncRow).observed !== observed)
      this.#reports.set(key, this.#written);
    if (observed !== undefined && this.#isForgotten(after as SyncRow)) this.#forgotten.set(key, observed);
    return [{ before, after }];
  }

  #count({ stageRun, state }: TargetRow, more: 1 | -1): void {
    const counts = this.#targets.get(stageRunKey(stageRun)) ?? new Map<TargetState, number>();
    this.#targets.set(stageRunKey(stageRun), counts.set(state, (counts.get(state) ?? 0) + more));
  }

  /** Notes the bound of the spec for the number of members that the planner knows. */
  #noteBound(): void {
    const [group, rolloutState] = [this.group(), this.rolloutState()];
    if (group === undefined || rolloutState === undefined) return;
    const members = rolloutState.stages.reduce((sum, stage) => sum + stage.members, 0);
    this.#servers.allow(Math.max(1, resolveCount(relationOf(group).rollout.maxConcurrent, members)));
  }

  /** Whether the API has forgotten the Sync, because its Cluster was deleted. */
  #isForgotten({ cluster, desired }: SyncRow): boolean {
    return desired.action === "orphan" && !this.#rows.has(keyText(keys.fleet(cluster)));
  }

  /** No assignment is written after a suspend or a halt, or without a slot. */
  #checkAssignment(
    before: SyncRow | undefined,
    sync: SyncRow,
    {
      rolloutState,
      changes,
    }: { readonly rolloutState: RolloutStateRow | undefined; readonly changes: readonly Change[] },
  ): void {
    const { cluster, name, desired } = sync;
    const what = `${name} on ${cluster}, attempt ${desired.attempt} of rollout ${desired.rollout}`;
    expect(desired.attempt, what).toBe((before?.desired.attempt ?? 0) + 1);
    const isDeletion = this.group()?.operations.deletion !== undefined;
    const isTakenBack = before?.desired.action === "delete";
    if (!isDeletion) this.guard.assigned(what, sync, { ...this.#watched(), guard: this.#steadyGuard(), isTakenBack });
    if (desired.action === "orphan") return;
    const slot = this.#rows.get(keyText(keys.slot(this.#owner, cluster))) as SlotRow | undefined;
    const stageId = slot && this.#stages.idOf(slot.stage);
    this.#servers.assigned(cluster, `${name} ${desired.token}`, stageId);
    const group = this.group();
    const isSuspended = group?.operations.suspended !== undefined && group.operations.deletion === undefined;
    expect(isSuspended, `${what}: suspended`).toBe(false);
    expect(slot?.attempts[name], `${what}: without a slot`).toBe(desired.attempt);
    if (desired.action === "delete") this.#checkRemoval(what, sync);
    if (rolloutState === undefined) return;
    const stageRun = slot?.stageRun && this.#stageRun(slot.stageRun);
    if (!isDeletion) {
      const { labels } = (this.#rows.get(keyText(keys.fleet(cluster))) ?? {}) as Partial<FleetRow>;
      const mayStart = this.#people.isRollback(desired.rollout) || this.#surroundings.mayStart(labels?.ring);
      expect(mayStart, `${what}: its window is closed`).toBe(true);
      expect(this.#surroundings.isCordoned(cluster), `${what}: its cluster is cordoned`).toBe(false);
      const earlier = stageRun && this.#before.get(`${stageRun.rollout} ${this.#stages.idOf(stageRun.stage)}`);
      this.#people.assigned({ what, sync, stageRun, isTakenBack, before: earlier ?? new Set() }, this.#watched());
      this.#takesBack.assigned(what, sync, stageRun, this.#watched());
    }
    const stage = rolloutState.stages.find((one) => one.name === slot?.stage);
    if (slot?.stageRun === undefined && stage !== undefined && desired.action === "apply")
      checkTakenAway(what, sync, stage, this);
    if (slot !== undefined && desired.action === "apply") checkRestored(what, sync, slot, this);
    if (stageRun === undefined) return;
    const old = changes.find(({ after }) => after === stageRun)?.before as StageRunRow | undefined;
    expect((old ?? stageRun).phase, `${what}: ${stageRunKey(stageRun)}`).toBe("Updating");
    if (stageRun.rollback !== true) this.#checkOrder(what, stageRun, rolloutState);
  }

  /** A template of the present spec is never deleted, whatever an older rollout says. */
  #checkRemoval(what: string, { name }: SyncRow): void {
    const group = this.group();
    if (group === undefined || group.operations.deletion !== undefined) return;
    const desired = relationOf(group).templates.map((template) => syncName(this.#owner, template.name));
    expect(desired, `${what}: is deleted, although it is desired`).not.toContain(name);
  }

  /** Notes the stage before a stage at the time when its stage run began. */
  #noteOrder({ rollout, stage }: StageRunRow, rolloutState: RolloutStateRow | undefined): void {
    const key = `${rollout} ${this.#stages.idOf(stage)}`;
    if (this.#before.has(key)) return;
    const index = rolloutState?.stages.findIndex(({ name }) => name === stage) ?? 0;
    const earlier = rolloutState?.stages.slice(Math.max(0, index - 1), Math.max(0, index)) ?? [];
    this.#before.set(key, new Set(earlier.map(({ name }) => this.#stages.idOf(name))));
  }

  /** A stage starts a rollout only after the stage before it has passed that rollout or a newer one. */
  #checkOrder(what: string, { rollout, stage }: StageRunRow, rolloutState: RolloutStateRow): void {
    const before = this.#before.get(`${rollout} ${this.#stages.idOf(stage)}`);
    for (const earlier of rolloutState.stages.filter(({ name }) => before?.has(this.#stages.idOf(name))))
      expect(earlier.current ?? 0, `${what}: ${stage} before ${earlier.name}`).toBeGreaterThanOrEqual(rollout);
  }

  #checkTarget(target: TargetRow): void {
    const { state, cluster, attempts, reason } = target;
    const isJudged = /^(DeadlineExceeded|RenderFailed|NewerRow)/.test(reason) || this.#isJudgedAtEnd(target);
    if ((state === "Failed" || state === "Unreachable") && !isJudged)
      expect(this.#observationsOf(target), `${cluster} is ${state}, which was never observed`).toContain(state);
    if (state !== "Succeeded") return;
    // After a new snapshot, a deletion finds nothing in clusters where it is done.
    if (this.#isOwnerDeletion(target.stageRun) && Object.keys(attempts).length === 0) return;
    expect(Object.keys(attempts).length, `${cluster} succeeded without anything`).toBeGreaterThan(0);
    for (const [name, attempt] of Object.entries(attempts)) {
      const row = this.#rows.get(keyText(keys.sync(cluster, this.#owner.namespace, name))) as SyncRow | undefined;
      if (row === undefined || row.desired.action !== "apply") continue;
      const { observed, desired } = row;
      const wasReady = observed?.phase === "Ready" || observed?.readyAt !== undefined;
      const facts = { attempt: observed?.attempt, wasReady, digest: observed?.applied?.renderDigest };
      const expected = { attempt, wasReady: true, digest: desired.renderDigest };
      expect(facts, `${name} on ${cluster} succeeded`).toEqual(expected);
    }
  }

  /**
   * The check at the end of a bake judges what no cluster has reported: that it did not answer, or was not ready then. A
   * call that began before a report may not know it.
   */
  #isJudgedAtEnd({ stageRun, cluster, attempts, reason }: TargetRow): boolean {
    if (!/^(NotReady: it was not ready|it did not answer) at the end of the bake/.test(reason)) return false;
    const { since } = this.#stageRun(stageRun)?.bake?.check ?? {};
    const names = Object.keys(attempts);
    if (since === undefined || names.length === 0) return since !== undefined;
    const known = Math.min(...[...this.#calls].map(({ from }) => from));
    return !names.every((name) => {
      const key = keyText(keys.sync(cluster, this.#owner.namespace, name));
      const row = this.#rows.get(key) as SyncRow | undefined;
      const { observed, desired, reconcile } = row ?? {};
      if (observed === undefined || desired === undefined || observed.attempt !== desired.attempt) return false;
      const isSeen =
        observed.at > since && (this.#reports.get(key) ?? 0) <= known && phaseTallies[observed.phase] !== "unreachable";
      const isAnswered =
        desired.assignedAt > since || (reconcile !== undefined && observed.handledReconcile === reconcile);
      return isSeen && isAnswered && (observed.phase === "Ready" || !reason.startsWith("NotReady"));
    });
  }

  #isOwnerDeletion(stageRun: StageRunRef): boolean {
    const rollout = this.rowsOf<RolloutRow>("Rollout").find(({ number }) => number === stageRun.rollout);
    return rollout?.plan.deletion !== undefined;
  }

  /** The observed phases of the attempts of this target. */
  #observationsOf({ cluster, attempts }: TargetRow): Phase[] {
    const names = Object.keys(attempts).map((name) => keyText(keys.sync(cluster, this.#owner.namespace, name)));
    return names.flatMap((name) => {
      const row = this.#rows.get(name) as SyncRow | undefined;
      if (row === undefined) return [];
      const observed = row.observed ?? this.#forgotten.get(keyText(row));
      return observed !== undefined && observed.attempt === attempts[row.name] ? [observed.phase] : [];
    });
  }

  /** The counts of a stage run match its rows, and their sum is the size of its snapshot. */
  #checkStageRun(stageRun: StageRunRow, before: StageRunRow | undefined): void {
    const what = `stage run ${stageRunKey(stageRun)} ${stageRun.phase}`;
    expect(
      targetStates.reduce((sum, state) => sum + stageRun.counts[state], 0),
      what,
    ).toBe(stageRun.size);
    // The rows of an owner that is gone are collected one after the other.
    if (stageRun.phase === "Superseded" || this.group() === undefined) return;
    const count = (state: TargetState) => this.#targets.get(stageRunKey(stageRun))?.get(state) ?? 0;
    for (const state of ["Succeeded", "Unchanged", "Failed", "Unreachable", "Skipped", "Superseded"] as const)
      expect(stageRun.counts[state], `${what}: ${state}`).toBe(count(state));
    const slots = this.slots().filter(
      (slot) => slot.releasing === undefined && stageRunKey(slot.stageRun ?? none) === stageRunKey(stageRun),
    );
    expect(stageRun.counts.Assigned, `${what}: slots`).toBe(slots.length);
    expect(stageRun.counts.Rendering, `${what}: rendering`).toBe(heldIn(stageRun, "rendering").length);
    const waiting =
      stageRun.size -
      stageRun.next +
      heldIn(stageRun, "worker").length +
      stageRun.returned.length +
      frozenIn(stageRun).length;
    expect(stageRun.counts.Waiting, `${what}: waiting`).toBe(waiting);
    // Budgets that somebody lowers afterwards say nothing about it.
    if (stageRun.phase === "Passed" && before?.phase !== "Passed") this.#checkPassed(what, { stageRun, count });
  }

  /** A passed stage run has evidence, and no more failed or unreachable targets than its budgets. */
  #checkPassed(
    what: string,
    { stageRun, count }: { readonly stageRun: StageRunRow; readonly count: (state: TargetState) => number },
  ): void {
    const group = this.group();
    // A stage run before the deletion ends like any other.
    const deletion = this.#isOwnerDeletion(stageRun);
    expect(stageRun.counts.Waiting + stageRun.counts.Rendering + stageRun.counts.Assigned, `${what}: left behind`).toBe(
      0,
    );
    const changed = stageRun.size - count("Unchanged") - count("Skipped");
    if (
      stageRun.rollback === true ||
      changed === 0 ||
      group === undefined ||
      promotionOf(group.operations, stageRun) !== undefined
    )
      return;
    const { maxFailures, maxUnreachable } = relationOf(group).rollout;
    if (!deletion) expect(count("Succeeded"), `${what}: without evidence`).toBeGreaterThan(0);
    const failures = count("Failed") - stageRun.preexistingFailures;
    expect(failures, `${what}: failures`).toBeLessThanOrEqual(deletion ? 0 : resolveCount(maxFailures, changed));
    const most = deletion ? 0 : resolveCount(maxUnreachable, changed, "up");
    expect(count("Unreachable"), `${what}: unreachable`).toBeLessThanOrEqual(most);
  }

  /** A stage returns to an older rollout only after an edit of its clusters, and the counts of slots match the rows. */
  #checkRolloutState(before: RolloutStateRow | undefined, rolloutState: RolloutStateRow): void {
    const counted = rolloutState.stages.reduce((sum, { changing }) => sum + changing, rolloutState.catchUps.changing);
    expect(counted, "slots of the rollout state").toBe(this.slots().length);
    for (const { name, changing, catchingUp = 0 } of rolloutState.stages) {
      const own = this.slots().filter(({ stage }) => stage === name);
      const ofStageRuns = own.filter(({ stageRun }) => stageRun !== undefined).length;
      expect({ changing, catchingUp }, `slots of ${name}`).toEqual({
        changing: ofStageRuns,
        catchingUp: own.length - ofStageRuns,
      });
    }
    const clusters = new Set(this.slots().map(({ cluster }) => cluster));
    expect(clusters.size, "clusters with a slot").toBe(this.slots().length);
    if (before?.uid !== rolloutState.uid) return;
    const isEdited = before.selected?.by !== rolloutState.selected?.by;
    for (const { name, current = 0, unasked } of isEdited ? [] : before.stages) {
      const after = rolloutState.stages.find((stage) => stage.name === name);
      // No cluster had what the stage passed without one: its approvers are asked when a cluster joins.
      if (unasked === true && after?.current === undefined) continue;
      if (after !== undefined) expect(after.current ?? 0, `stage ${name} goes back`).toBeGreaterThanOrEqual(current);
    }
    const catchUps = this.rowsOf("CatchUp").filter((row) => row.sk.startsWith("CATCHUP#waiting#"));
    expect(rolloutState.catchUps.waiting, "catch-ups of the rollout state").toBe(catchUps.length);
    const failed = this.rowsOf<CatchUpRow>("CatchUp").filter((row) => row.sk.startsWith("CATCHUP#failed#"));
    expect(rolloutState.catchUps.failed, "failed catch-ups of the rollout state").toBe(failed.length);
    const away = this.rowsOf("CatchUp").filter((row) => row.sk.startsWith("CATCHUP#away#"));
    expect(rolloutState.catchUps.away ?? 0, "unreachable catch-ups of the rollout state").toBe(away.length);
    for (const { name, failedCatchUps } of rolloutState.stages)
      expect(failedCatchUps, `failed catch-ups of ${name}`).toBeLessThanOrEqual(
        failed.filter(({ stage }) => stage === name).length,
      );
  }
}

const none = { rollout: 0, stage: "", snapshot: 0 };

/** A memory table whose every write the watch sees. */
export class WatchedTable extends MemoryTable {
  readonly #watch: PlannerWatch;
  /** Writes that took effect. */
  effects = 0;

  constructor(watch: PlannerWatch, options: ConstructorParameters<typeof MemoryTable>[0]) {
    super(options);
    this.#watch = watch;
  }

  override async write(writes: readonly Write[]): Promise<void> {
    await super.write(writes);
    this.effects++;
    this.#watch.written(writes);
  }
}
