import { withContent } from "#functions/rollout/ledger.ts";
import type { Known } from "#functions/rollout/read-subject.ts";
import { isSameRow } from "#functions/rollout/same-row.ts";
import { subjectWrite } from "#functions/rollout/subject-write.ts";
import { defined } from "#shared/base/defined.ts";
import { isRenderFailure } from "#shared/fleet/rollout/assignments.ts";
import { isSameLeg, legKey, refOf, superseded, withOutcome, withoutOutcome } from "#shared/fleet/rollout/legs.ts";
import { arrivalsAfter } from "#shared/fleet/rollout/slots.ts";
import type { StatusFacts } from "#shared/fleet/rollout/subject-status.ts";
import { due, watchdogAt } from "#shared/fleet/rows/due.ts";
import { type ArrivalState, keys, type Subject } from "#shared/fleet/rows/keys.ts";
import type {
  ArrivalRow,
  ContentRow,
  Job,
  LegRef,
  LegRow,
  SlotRow,
  TargetRow,
  TargetState,
  UnitRow,
  UnitStage,
} from "#shared/fleet/rows/rollout-rows.ts";
import { keyText, type Row, rowSchema } from "#shared/fleet/rows/row.ts";
import { isOfType } from "#shared/fleet/rows/stored-row.ts";
import type { Message } from "#shared/messages.ts";
import type { Table, Write } from "#shared/ports.ts";

/** What a unit may be changed to; what is undefined it has no more. */
type UnitChange = {
  readonly [Name in keyof UnitRow]?: UnitRow[Name] | (object extends Pick<UnitRow, Name> ? undefined : never);
};

/** DynamoDB takes so many actions in one transaction. */
const mostActions = 100;
/** A unit names so many clusters that only a newer version can read. */
export const keptUnreadable = 100;

/** What became of a cluster. */
export interface Outcome {
  readonly state: Extract<TargetState, "Succeeded" | "Unchanged" | "Failed" | "Unreachable" | "Skipped" | "Superseded">;
  readonly reason: string;
  readonly attempts?: Readonly<Record<string, number>>;
  readonly assignedAt?: string;
  readonly preexisting?: true | undefined;
}

/** What a step saw that no row says. */
type Seen = Pick<StatusFacts, "settled" | "behind" | "stopped">;

/**
 * One step of the planner, while it is put together: the unit with its legs, and whatever goes with them. All of it is
 * written at once under the unit's version. A target's row changes together with the counts of its leg, in `record` and
 * `amend`; what has no row is counted by whoever moves it.
 */
export class Transaction {
  readonly known: Known;
  readonly now: Date;
  readonly messages: Message[] = [];
  #unit: UnitRow;
  /** As they are after this step. */
  readonly #legs: Map<string, LegRow>;
  readonly #contents: Map<number, ContentRow>;
  readonly #writes: Write[] = [];
  /** By key, those that are there; with what was read of them. */
  readonly #arrivals = new Map<string, Row | undefined>();
  readonly #reported: LegRef[] = [];
  #isNews = false;

  constructor(known: Known, now: Date) {
    this.known = known;
    this.now = now;
    this.#unit = known.unit;
    this.#legs = new Map(known.legs);
    this.#contents = new Map(known.contents);
  }

  get at(): string {
    return this.now.toISOString();
  }

  get unit(): UnitRow {
    return this.#unit;
  }

  content(number: number): ContentRow {
    const content = this.#contents.get(number);
    if (content === undefined) throw new Error(`content ${number} of ${this.known.subject.name} is not there`);
    return content;
  }

  /** Rows that still fit; the unit, the subject, and a leg of every stage with the one before it are counted already. */
  room(): number {
    return mostActions - 2 - this.#unit.stages.length * 2 - this.#writes.length;
  }

  hasChanged(): boolean {
    return this.#unit !== this.known.unit || this.#changedLegs().length + this.#writes.length > 0;
  }

  /** False where everything that it writes is there already: the next step would decide the same again. */
  isNews(): boolean {
    const { unit, legs } = this.known;
    return (
      this.#isNews ||
      (this.#unit !== unit && !isSameRow(this.#unit, unit)) ||
      this.#changedLegs().some((leg) => !isSameRow(leg, legs.get(legKey(leg)))) ||
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

  /** Something is written outside of the transaction, or somebody else's write was met there: the next step finds other rows. */
  noteOtherWrites(): void {
    this.#isNews = true;
  }

  edit(change: UnitChange): void {
    this.#unit = defined({ ...this.#unit, ...change });
  }

  editStage(name: string | undefined, change: (stage: UnitStage) => UnitStage): void {
    this.edit({ stages: this.#unit.stages.map((stage) => (stage.name === name ? change(stage) : stage)) });
  }

  countArrivals(change: Partial<UnitRow["arrivals"]>): void {
    this.edit({ arrivals: arrivalsAfter(this.#unit.arrivals, change) });
  }

  leg(ref: LegRef): LegRow | undefined {
    return this.#legs.get(legKey(ref));
  }

  putLeg(leg: LegRow): void {
    this.#legs.set(legKey(leg), leg);
  }

  /** Moves targets of a leg from one state to another, in its counts. */
  count(leg: LegRow, change: Partial<Record<TargetState, number>>): LegRow {
    const current = this.leg(leg) ?? leg;
    const counts = { ...current.counts };
    for (const [state, by] of Object.entries(change)) counts[state as TargetState] += by;
    const next = { ...current, counts };
    this.putLeg(next);
    return next;
  }

  putContent(content: ContentRow): void {
    this.#contents.set(content.number, content);
    this.put(content);
    this.edit(withContent(this.#unit, content));
  }

  /** Work for the steps after this one, once what is there already is done. */
  addJobs(...jobs: readonly Job[]): void {
    this.edit({ jobs: [...this.#unit.jobs, ...jobs] });
  }

  /** The leg lets another content in, or ends with its stage. */
  supersede(leg: LegRow, by: number | undefined): void {
    this.putLeg(superseded(this.leg(leg) ?? leg, by, this.at));
    this.report(leg);
  }

  /** What it says is another thing now: people are told. */
  report(leg: LegRow): void {
    this.#reported.push(refOf(leg));
    this.messages.push(...reports(this.known.subject, [refOf(leg)]));
  }

  /** @returns the row as it is after this step. */
  putSlot(slot: Omit<SlotRow, keyof Row>, before?: SlotRow): SlotRow {
    const put = this.put<SlotRow>({ ...slot, ...keys.slot(this.known.subject, slot.cluster), type: "Slot" }, before);
    if (before !== undefined) this.#countSlot(before, -1);
    this.#countSlot(slot, 1);
    return put;
  }

  dropSlot(slot: SlotRow): void {
    this.delete(slot);
    this.#countSlot(slot, -1);
  }

  /** One without a leg is an arrival's, which its stage counts, too; one whose stage is gone is among them. */
  #countSlot({ leg, stage: name }: Pick<SlotRow, "leg" | "stage">, by: number): void {
    const isThere = this.#unit.stages.some((stage) => stage.name === name);
    const counted = leg === undefined ? "arriving" : "changing";
    if (leg === undefined || !isThere) this.countArrivals({ changing: by });
    this.editStage(name, (stage) => ({ ...stage, [counted]: Math.max(0, (stage[counted] ?? 0) + by) }));
  }

  /** What became of a target, out of the state that it was counted in. */
  record(leg: LegRow, target: { readonly cluster: string; readonly order: number }, from: TargetState, to: Outcome) {
    const { cluster, order } = target;
    const counted = this.count(leg, { [from]: -1, [to.state]: 1 });
    const key = keys.target(this.known.subject, leg, cluster);
    const row = { leg: refOf(leg), order, cluster, attempts: {}, ...defined(to), endedAt: this.at };
    this.put<TargetRow>({ ...row, ...key, type: "Target" });
    this.putLeg(withOutcome(counted, { cluster, ...to }));
  }

  /** Something else becomes of a target that had failed, or did not answer. Without it, the target has another turn. */
  amend(target: TargetRow, to?: Pick<Outcome, "state" | "reason">): void {
    const leg = this.leg(target.leg);
    if (leg === undefined) return;
    const { preexisting: _preexisting, ...kept } = target;
    const returned = to === undefined ? [...leg.returned, target.order] : leg.returned;
    this.putLeg({ ...withoutOutcome(leg, target), returned });
    this.count(leg, { [target.state]: -1, [to?.state ?? "Waiting"]: 1 });
    if (to === undefined) this.delete(target);
    else this.put<TargetRow>({ ...kept, ...to, endedAt: this.at }, target);
  }

  /** What was found of them, whether it can be read or not: one cluster has one arrival of a state at most. */
  see(rows: readonly Row[]): void {
    for (const row of rows) this.#arrivals.set(keyText(row), row);
  }

  /** One that is there already stays what it is, but for what its cluster lost. */
  putArrival(
    cluster: string,
    state: ArrivalState,
    arrival: Pick<ArrivalRow, "why" | "reason" | "stage" | "content">,
  ): void {
    const key = keys.arrival(this.known.subject, state, cluster);
    if (!this.#arrivals.has(keyText(key))) {
      this.put<ArrivalRow>({ ...key, type: "Arrival", cluster, since: this.at, ...arrival });
      this.#arrivals.set(keyText(key), undefined);
      this.#countArrival(arrival, state, 1);
      if (state !== "waiting") this.edit({ arrivalEndedAt: this.at });
      return;
    }
    const found = this.#arrivals.get(keyText(key));
    if (arrival.content === undefined || found === undefined || !isOfType(found, "Arrival")) return;
    if (found.content !== undefined) return;
    this.changeArrival(found, { content: arrival.content });
    // A transaction names a row once. What else is missing of another content the next one brings.
    this.#arrivals.set(keyText(key), undefined);
  }

  /** What their stage has passed left them behind, and they are no more. */
  catchUp(left: readonly TargetRow[]): void {
    for (const target of left) this.amend(target, { state: "Superseded", reason: "comes to its stage again" });
  }

  /** What is undefined it has no more. */
  changeArrival(arrival: ArrivalRow, change: { readonly stage?: string; readonly content?: number | undefined }): void {
    const next = defined({ ...arrival, ...change });
    this.put<ArrivalRow>(next, arrival);
    const { state } = keys.arrival.read(arrival);
    this.#countArrival(arrival, state, -1);
    this.#countArrival(next, state, 1);
  }

  dropArrival(arrival: ArrivalRow): void {
    this.delete(arrival);
    this.#countArrival(arrival, keys.arrival.read(arrival).state, -1);
  }

  #countArrival({ stage, reason }: Pick<ArrivalRow, "stage" | "reason">, state: ArrivalState, by: number): void {
    this.countArrivals({ [state]: by });
    // What was found of those that wait was of others.
    if (state === "waiting") this.edit({ arrivalsHeld: undefined });
    // A cluster that does not answer, or could not be rendered for, says nothing about the rollout.
    if (state === "failed" && !isRenderFailure(reason))
      this.editStage(stage, (one) => ({ ...one, failedArrivals: Math.max(0, one.failedArrivals + by) }));
  }

  /** It is left alone, and looked at again whenever everybody is. */
  cannotRead(cluster: string): void {
    const { unreadable = [] } = this.#unit;
    if (unreadable.includes(cluster) || unreadable.length >= keptUnreadable) return;
    this.edit({ unreadable: [...unreadable, cluster] });
  }

  /** A row over the one that was read, or where there was none. */
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

  /** The subject's row with the status that this step leaves; a check of it where nothing is to be said. */
  status(seen: Seen = {}): Write {
    return subjectWrite(this.known.row, { ...this.known, unit: this.#unit, legs: this.#legs, now: this.now, ...seen });
  }

  /**
   * @param until - nobody needs to look before.
   * @returns what is known after it.
   * @throws ConflictError when somebody else wrote what this was decided on.
   */
  async commit(table: Table, { until, ...seen }: Seen & { readonly until?: string } = {}): Promise<Known> {
    const { unit: before, row } = this.known;
    const { deadline = "~" } = this.#unit;
    this.edit({ untold: this.#reported.length === 0 ? undefined : this.#reported });
    const unit = putOver(due(this.#unit, until ?? [watchdogAt(this.now, 0), deadline].sort()[0]), before);
    const status = this.status(seen);
    const legs = this.#changedLegs().map((leg) => putOver(leg, this.known.legs.get(legKey(leg))));
    await table.write([unit, status, ...legs, ...this.#writes]);
    for (const { put } of legs) this.putLeg(put);
    const named = unit.put.stages.flatMap(({ moving, passed }) => [moving, passed]);
    return {
      ...this.known,
      unit: unit.put,
      row: "put" in status ? (status.put as Known["row"]) : row,
      legs: new Map([...this.#legs].filter(([, leg]) => named.some((ref) => isSameLeg(ref, leg)))),
      contents: this.#contents,
    };
  }

  #changedLegs(): readonly LegRow[] {
    return [...this.#legs.values()].filter((leg) => leg !== this.known.legs.get(legKey(leg)));
  }
}

export function reports(subject: Subject, legs: readonly LegRef[] = []): readonly Message[] {
  return legs.map((leg) => ({ to: "report", about: { kind: "Rollout", subject, leg } }));
}

function putOver<Written extends Row>(row: Omit<Written, "schema" | "version">, before: Written | undefined) {
  const version = before?.version ?? 0;
  // Nothing else is missing of it.
  const put = { ...row, schema: rowSchema, version: version + 1 } as unknown as Written;
  return { put, when: version === 0 ? ("absent" as const) : { version } };
}
