import { readClusters } from "#functions/rollout/read/read-clusters.ts";
import { defined } from "#shared/base/defined.ts";
import { canonicalJson } from "#shared/base/json.ts";
import { isWatched } from "#shared/fleet/rollout/alarms.ts";
import { isRenderFailure } from "#shared/fleet/rollout/assignments.ts";
import { type ClusterRows, type Known, keptUnreadable } from "#shared/fleet/rollout/facts.ts";
import { withRollout } from "#shared/fleet/rollout/ledger.ts";
import { ownerStatus, type StatusFacts } from "#shared/fleet/rollout/owner-status.ts";
import { catchUpsAfter } from "#shared/fleet/rollout/slots.ts";
import {
  isSameStageRun,
  refOf,
  stageRunKey,
  superseded,
  withOutcome,
  withoutOutcome,
} from "#shared/fleet/rollout/stage-runs.ts";
import { earliestOf, timersOf, watchdogOf } from "#shared/fleet/rollout/timers.ts";
import { due } from "#shared/fleet/rows/due.ts";
import { type CatchUpState, keys, type Owner } from "#shared/fleet/rows/keys.ts";
import { plannedSchema } from "#shared/fleet/rows/needed-schema.ts";
import { isUnplanned, type OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import type {
  CatchUpRow,
  Job,
  RolloutRow,
  RolloutStateRow,
  SlotRow,
  StageRecord,
  StageRunRef,
  StageRunRow,
  TargetRow,
  TargetState,
} from "#shared/fleet/rows/rollout-rows.ts";
import { keyText, type Row } from "#shared/fleet/rows/row.ts";
import { isOfType } from "#shared/fleet/rows/stored-row.ts";
import type { Message } from "#shared/messages.ts";
import type { Table, Write } from "#shared/ports.ts";

/** Changes of a rollout state; a field that is undefined is removed. */
type RolloutStateChange = {
  readonly [Name in keyof RolloutStateRow]?:
    | RolloutStateRow[Name]
    | (object extends Pick<RolloutStateRow, Name> ? undefined : never);
};

/** Number of actions that DynamoDB takes in one transaction. */
const mostActions = 100;

/** The result of a cluster. */
export interface TargetOutcome {
  readonly state: Extract<TargetState, "Succeeded" | "Unchanged" | "Failed" | "Unreachable" | "Skipped" | "Superseded">;
  readonly reason: string;
  readonly attempts?: Readonly<Record<string, number>>;
  readonly assignedAt?: string;
  readonly preexisting?: true | undefined;
  /** A person took it out. */
  readonly takenOut?: true | undefined;
}

/** Observations of a step that no row has. */
type Seen = Pick<StatusFacts, "settled" | "behind" | "stopped">;

/**
 * One step of the planner while it is composed: the rollout state with its stage runs, and the rows that belong to it.
 * Everything is written at once under the version of the rollout state. A target's row changes together with the counts
 * of its stage run, in `record` and `amend`; a target without a row is counted by the step that moves it.
 */
export class Transaction {
  readonly known: Known;
  readonly now: Date;
  readonly messages: Message[] = [];
  #rolloutState: RolloutStateRow;
  /** Stage runs as they are after this step. */
  readonly #stageRuns: Map<string, StageRunRow>;
  readonly #rollouts: Map<number, RolloutRow>;
  readonly #writes: Write[] = [];
  /** Existing catch-ups by key, as far as they were read. */
  readonly #catchUps = new Map<string, Row | undefined>();
  readonly #reported: StageRunRef[] = [];
  #isNews = false;

  constructor(known: Known, now: Date) {
    this.known = known;
    this.now = now;
    this.#rolloutState = known.rolloutState;
    this.#stageRuns = new Map(known.stageRuns);
    this.#rollouts = new Map(known.rollouts);
  }

  get at(): string {
    return this.now.toISOString();
  }

  get rolloutState(): RolloutStateRow {
    return this.#rolloutState;
  }

  rollout(number: number): RolloutRow {
    const rollout = this.#rollouts.get(number);
    if (rollout === undefined) throw new Error(`rollout ${number} of ${this.known.owner.name} is missing`);
    return rollout;
  }

  /** A rollout of the ledger that was read because no stage names it any more. */
  seeRollout(rollout: RolloutRow): void {
    this.#rollouts.set(rollout.number, rollout);
  }

  hasRollout(number: number): boolean {
    return this.#rollouts.has(number);
  }

  /** Rows that still fit; the rollout state, the owner, and two stage runs for every stage are counted already. */
  room(): number {
    return mostActions - 2 - this.#rolloutState.stages.length * 2 - this.#writes.length;
  }

  hasChanged(): boolean {
    return this.#rolloutState !== this.known.rolloutState || this.#changedStageRuns().length + this.#writes.length > 0;
  }

  /** False when everything that it writes exists already: the next step would decide the same again. */
  isNews(): boolean {
    const { rolloutState, stageRuns } = this.known;
    return (
      this.#isNews ||
      (this.#rolloutState !== rolloutState && !isSameRow(this.#rolloutState, rolloutState)) ||
      this.#changedStageRuns().some((stageRun) => !isSameRow(stageRun, stageRuns.get(stageRunKey(stageRun)))) ||
      this.#saysMore()
    );
  }

  #saysMore(): boolean {
    const said = this.status();
    if (!("put" in said)) return false;
    const { asOf: _new, ...status } = (said.put as Known["row"]).status;
    const { asOf: _old, ...before } = this.known.row.status;
    return !isSameRow(status, before);
  }

  /**
   * Something is written outside of the transaction, or another writer was faster there: the next step finds other
   * rows.
   */
  noteOtherWrites(): void {
    this.#isNews = true;
  }

  edit(change: RolloutStateChange): void {
    this.#rolloutState = defined({ ...this.#rolloutState, ...change });
  }

  editStage(name: string | undefined, change: (stage: StageRecord) => StageRecord): void {
    this.edit({ stages: this.#rolloutState.stages.map((stage) => (stage.name === name ? change(stage) : stage)) });
  }

  countCatchUps(change: Partial<RolloutStateRow["catchUps"]>): void {
    this.edit({ catchUps: catchUpsAfter(this.#rolloutState.catchUps, change) });
  }

  stageRun(ref: StageRunRef): StageRunRow | undefined {
    return this.#stageRuns.get(stageRunKey(ref));
  }

  putStageRun(stageRun: StageRunRow): void {
    this.#stageRuns.set(stageRunKey(stageRun), stageRun);
  }

  /** Moves targets of a stage run from one state to another, in its counts. */
  count(stageRun: StageRunRow, change: Partial<Record<TargetState, number>>): StageRunRow {
    const current = this.stageRun(stageRun) ?? stageRun;
    const counts = { ...current.counts };
    for (const [state, by] of Object.entries(change)) counts[state as TargetState] += by;
    const next = { ...current, counts };
    this.putStageRun(next);
    return next;
  }

  putRollout(rollout: RolloutRow): void {
    this.#rollouts.set(rollout.number, rollout);
    this.put(rollout);
    this.edit(withRollout(this.#rolloutState, rollout));
  }

  /** Work for the steps after this one, after the existing jobs. */
  addJobs(...jobs: readonly Job[]): void {
    this.edit({ jobs: [...this.#rolloutState.jobs, ...jobs] });
  }

  /** Ends a stage run: another rollout replaces it, or its stage was removed. */
  supersede(stageRun: StageRunRow, by: number | undefined): void {
    const { row, rolloutState } = this.known;
    const isRefresh = this.#rolloutState.handledRefresh !== rolloutState.handledRefresh;
    const cause = { by, ...(isRefresh ? defined({ refresh: row.operations.refresh }) : {}) };
    this.putStageRun(superseded(this.stageRun(stageRun) ?? stageRun, cause, this.at));
    this.report(stageRun);
  }

  /** Its phase has changed, so that people are informed. */
  report(stageRun: StageRunRow): void {
    this.#reported.push(refOf(stageRun));
    this.messages.push(...reports(this.known.owner, [refOf(stageRun)]));
  }

  /** @returns the row as it is after this step. */
  putSlot(slot: Omit<SlotRow, keyof Row>, before?: SlotRow): SlotRow {
    const put = this.put<SlotRow>({ ...slot, ...keys.slot(this.known.owner, slot.cluster), type: "Slot" }, before);
    if (before !== undefined) this.#countSlot(before, -1);
    this.#countSlot(slot, 1);
    return put;
  }

  dropSlot(slot: SlotRow): void {
    this.delete(slot);
    this.#countSlot(slot, -1);
  }

  /**
   * A slot without a stage run belongs to a catch-up, which its stage counts as well; slots of removed stages are among
   * them.
   */
  #countSlot({ stageRun, stage: name }: Pick<SlotRow, "stageRun" | "stage">, by: number): void {
    const isThere = this.#rolloutState.stages.some((stage) => stage.name === name);
    const counted = stageRun === undefined ? "catchingUp" : "changing";
    if (stageRun === undefined || !isThere) this.countCatchUps({ changing: by });
    this.editStage(name, (stage) => ({ ...stage, [counted]: Math.max(0, (stage[counted] ?? 0) + by) }));
  }

  /** Records the result of a target, from the state that it was counted in. */
  record(
    stageRun: StageRunRow,
    target: { readonly cluster: string; readonly order: number },
    from: TargetState,
    to: TargetOutcome,
  ) {
    const { cluster, order } = target;
    const counted = this.count(stageRun, { [from]: -1, [to.state]: 1 });
    const key = keys.target(this.known.owner, stageRun, cluster);
    const row = { stageRun: refOf(stageRun), order, cluster, attempts: {}, ...defined(to), endedAt: this.at };
    this.put<TargetRow>({ ...row, ...key, type: "Target" });
    this.putStageRun(withOutcome(counted, { cluster, at: this.at, ...to }));
  }

  /**
   * Changes the result of a target that was done, had failed, or did not answer. Without a new result, the target gets
   * another turn.
   */
  amend(target: TargetRow, to?: Pick<TargetOutcome, "state" | "reason" | "takenOut">): void {
    const stageRun = this.stageRun(target.stageRun);
    if (stageRun === undefined) return;
    const { preexisting: _preexisting, takenOut: _takenOut, ...kept } = target;
    const returned = to === undefined ? [...stageRun.returned, target.order] : stageRun.returned;
    // Its content may come from an attempt that did not pass.
    const adopts = to === undefined && stageRun.gates !== undefined ? { adopts: true as const } : {};
    this.putStageRun({ ...withoutOutcome(stageRun, target), returned, ...adopts });
    const next = to?.state ?? "Waiting";
    const counted = this.count(stageRun, next === target.state ? {} : { [target.state]: -1, [next]: 1 });
    if (to === undefined) {
      this.delete(target);
      return;
    }
    this.putStageRun(withOutcome(counted, { cluster: target.cluster, at: this.at, ...to }));
    this.put<TargetRow>({ ...kept, ...defined(to), endedAt: this.at }, target);
  }

  /** Catch-ups that were found, readable or not: a cluster has at most one of each state. */
  see(rows: readonly Row[]): void {
    for (const row of rows) this.#catchUps.set(keyText(row), row);
  }

  /** An existing catch-up stays as it is, except for what its cluster lost. */
  putCatchUp(
    cluster: string,
    state: CatchUpState,
    catchUp: Pick<CatchUpRow, "why" | "reason" | "stage" | "rollout">,
  ): void {
    const key = keys.catchUp(this.known.owner, state, cluster);
    if (!this.#catchUps.has(keyText(key))) {
      this.put<CatchUpRow>({ ...key, type: "CatchUp", cluster, since: this.at, ...catchUp });
      this.#catchUps.set(keyText(key), undefined);
      this.#countCatchUp(catchUp, state, 1);
      if (state !== "waiting") this.edit({ catchUpEndedAt: this.at });
      return;
    }
    const found = this.#catchUps.get(keyText(key));
    if (catchUp.rollout === undefined || found === undefined || !isOfType(found, "CatchUp")) return;
    if (found.rollout !== undefined) return;
    this.changeCatchUp(found, { rollout: catchUp.rollout });
    // A transaction names a row once. The next step brings what is missing of another rollout.
    this.#catchUps.set(keyText(key), undefined);
  }

  /** Removes catch-ups that were left behind when their stage passed. */
  catchUp(left: readonly TargetRow[]): void {
    for (const target of left) this.amend(target, { state: "Superseded", reason: "comes to its stage again" });
  }

  /** A field that is undefined is removed. */
  changeCatchUp(catchUp: CatchUpRow, change: { readonly stage?: string; readonly rollout?: number | undefined }): void {
    const next = defined({ ...catchUp, ...change });
    this.put<CatchUpRow>(next, catchUp);
    const { state } = keys.catchUp.read(catchUp);
    this.#countCatchUp(catchUp, state, -1);
    this.#countCatchUp(next, state, 1);
  }

  dropCatchUp(catchUp: CatchUpRow): void {
    this.delete(catchUp);
    this.#countCatchUp(catchUp, keys.catchUp.read(catchUp).state, -1);
  }

  #countCatchUp({ stage, reason }: Pick<CatchUpRow, "stage" | "reason">, state: CatchUpState, by: number): void {
    this.countCatchUps({ [state]: by });
    // The counts of waiting catch-ups were about others.
    if (state === "waiting") this.edit({ catchUpsHeld: undefined });
    // A cluster that does not answer, or could not be rendered for, tells nothing about the rollout.
    if (state === "failed" && !isRenderFailure(reason))
      this.editStage(stage, (one) => ({ ...one, failedCatchUps: Math.max(0, one.failedCatchUps + by) }));
  }

  /** Leaves the cluster alone until the next full check. */
  cannotRead(cluster: string): void {
    const { unreadable = [] } = this.#rolloutState;
    if (unreadable.includes(cluster) || unreadable.length >= keptUnreadable) return;
    this.edit({ unreadable: [...unreadable, cluster] });
  }

  /** Writes a row over the one that was read, or where there was none. */
  put<Written extends Row>(row: Omit<Written, "schema" | "version">, before?: Written): Written {
    const write = putOver(row, before);
    this.#writes.push(write);
    this.#isNews ||= before === undefined || !isSameRow(row, before);
    return write.put;
  }

  delete(row: Row): void {
    this.#isNews = true;
    this.#writes.push({ delete: { pk: row.pk, sk: row.sk }, when: { version: row.version } });
  }

  write(write: Write): void {
    this.#writes.push(write);
  }

  /** The owner's row with the status after this step, or a check of the row when the status stays. */
  status(seen: Seen = {}): Write {
    return ownerWrite(this.known.row, {
      ...this.known,
      rolloutState: this.#rolloutState,
      stageRuns: this.#stageRuns,
      now: this.now,
      ...seen,
    });
  }

  /**
   * @param until - no check is needed before this time.
   * @returns the facts after the step.
   * @throws ConflictError when another writer changed the rows that this was decided on.
   */
  async commit(table: Table, { until, ...seen }: Seen & { readonly until?: string | undefined } = {}): Promise<Known> {
    const { rolloutState: before, row } = this.known;
    this.edit({ pendingReports: this.#reported.length === 0 ? undefined : this.#reported });
    const rolloutState = putOver(due(this.#rolloutState, until ?? this.#dueMeanwhile()), before);
    const status = this.status(seen);
    const stageRuns = this.#changedStageRuns().map((stageRun) =>
      putOver(
        // The next tick reads its alarms.
        due(stageRun, isWatched(stageRun) ? this.at : undefined),
        this.known.stageRuns.get(stageRunKey(stageRun)),
      ),
    );
    await table.write([rolloutState, status, ...stageRuns, ...this.#writes]);
    for (const { put } of stageRuns) this.putStageRun(put);
    const named = rolloutState.put.stages.flatMap(({ updatingTo, passed }) => [updatingTo, passed]);
    return {
      ...this.known,
      rolloutState: rolloutState.put,
      row: "put" in status ? (status.put as Known["row"]) : row,
      stageRuns: new Map(
        [...this.#stageRuns].filter(([, stageRun]) => named.some((ref) => isSameStageRun(ref, stageRun))),
      ),
      rollouts: this.#rollouts,
    };
  }

  /** The call goes on after this step; when it does not, its message is lost. */
  #dueMeanwhile(): string | undefined {
    const rolloutState = this.#rolloutState;
    const watchdog = watchdogOf({ activity: "moving", isSettled: false, pk: rolloutState.pk }, this.now);
    return earliestOf([...timersOf({ ...this.known, rolloutState }, [], this.now), watchdog]);
  }

  #changedStageRuns(): readonly StageRunRow[] {
    return [...this.#stageRuns.values()].filter(
      (stageRun) => stageRun !== this.known.stageRuns.get(stageRunKey(stageRun)),
    );
  }
}

export function reports(owner: Owner, stageRuns: readonly StageRunRef[] = []): readonly Message[] {
  return stageRuns.map((stageRun) => ({ to: "report", about: { kind: "Rollout", owner, stageRun } }));
}

function putOver<Written extends Row>(row: Omit<Written, "schema" | "version">, before: Written | undefined) {
  const version = before?.version ?? 0;
  // Nothing else of it is missing.
  const put = { ...row, schema: plannedSchema(row), version: version + 1 } as unknown as Written;
  return { put, when: version === 0 ? ("absent" as const) : { version } };
}

/**
 * Part of every transaction of the planner: it writes the owner's status when that changed, and otherwise checks that
 * the owner is still as it was read. So a decision that was made before a suspend or a new spec is never written after
 * it.
 */
export function ownerWrite(row: OwnerRow, facts: StatusFacts): Write {
  const status = ownerStatus(row, facts);
  const { asOf: _new, ...changed } = status;
  const { asOf: _old, ...before } = row.status;
  const same = canonicalJson(changed) === canonicalJson(before);
  const key = { pk: row.pk, sk: row.sk };
  if (same && row.dueKey === undefined && !isUnplanned(row)) return { check: key, when: { version: row.version } };
  const next: OwnerRow = { ...due(row, undefined), status, version: row.version + 1 };
  return { put: next, when: { version: row.version } };
}

/** True when two rows differ only in what every write changes. */
function isSameRow(one: object, other: object | undefined): boolean {
  return canonicalJson(withoutTimes(one)) === canonicalJson(withoutTimes(other ?? {}));
}

function withoutTimes(row: Partial<Row>): object {
  const { schema: _schema, version: _version, dueShard: _shard, dueKey: _key, dispatches: _dispatches, ...rest } = row;
  return rest;
}

/** The same plan gets another rollout, which goes through all stages again. */
export function renumber(transaction: Transaction): void {
  transaction.edit({ inputsVersion: transaction.known.rolloutState.inputsVersion + 1 });
}

/** A rollout that a cluster gets: one that only the ledger has is read. */
export async function seeRollout(transaction: Transaction, number: number, table: Table): Promise<RolloutRow> {
  if (!transaction.hasRollout(number)) {
    const found = await table.get(keys.rollout(transaction.known.owner, number));
    if (found !== undefined) transaction.seeRollout(found);
  }
  return transaction.rollout(number);
}

/** For a step about clusters: it reads their catch-ups, and leaves unreadable clusters alone. @returns the others. */
export async function seeClusters(
  transaction: Transaction,
  desired: Parameters<typeof readClusters>[1],
  table: Table,
): Promise<ReadonlyMap<string, ClusterRows>> {
  const found = await readClusters(transaction.known, desired, table);
  for (const { cluster, catchUps, newer } of found.values()) {
    transaction.see(catchUps);
    if (newer !== undefined) transaction.cannotRead(cluster);
  }
  return new Map([...found].filter(([, { newer }]) => newer === undefined));
}
