import type { Known } from "#functions/rollout/read-subject.ts";
import { statusFacts } from "#functions/rollout/status-facts.ts";
import { subjectWrite } from "#functions/rollout/subject-write.ts";
import { defined } from "#shared/base/defined.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import { isSameLeg, keptFailures, keptText, legKey, refOf, superseded } from "#shared/fleet/rollout/legs.ts";
import type { StatusFacts } from "#shared/fleet/rollout/subject-status.ts";
import { due, watchdogAt } from "#shared/fleet/rows/due.ts";
import { type ArrivalState, keys } from "#shared/fleet/rows/keys.ts";
import type {
  ArrivalRow,
  ContentRow,
  LegRow,
  SlotRow,
  TargetRow,
  TargetState,
  UnitRow,
  UnitStage,
} from "#shared/fleet/rows/rollout-rows.ts";
import { keyText, type Row, rowSchema } from "#shared/fleet/rows/row.ts";
import type { Message } from "#shared/messages.ts";
import type { Table, Write } from "#shared/ports.ts";

/** DynamoDB takes so many actions in one transaction. */
const mostActions = 100;
/** A unit keeps so many of the newest contents, besides those that a stage is on or moves to. */
const keptLedger = 32;
/** And names so many clusters that only a newer version can read. */
const keptUnreadable = 100;

type OptionalMember = { [Name in keyof UnitRow]-?: object extends Pick<UnitRow, Name> ? Name : never }[keyof UnitRow];

/** What became of a cluster. */
export interface Outcome {
  readonly state: Extract<TargetState, "Succeeded" | "Unchanged" | "Failed" | "Unreachable" | "Skipped" | "Superseded">;
  readonly reason: string;
  readonly attempts?: Readonly<Record<string, number>>;
  readonly assignedAt?: string;
  readonly preexisting?: true | undefined;
}

/**
 * One step of the planner, while it is put together: the unit with its legs, and whatever goes with them. All of it is
 * written at once under the unit's version. A target's row changes together with the counts of its leg, in `record`, `retry`
 * and `amend`; what has no row is counted by whoever moves it.
 */
export class Transaction {
  readonly known: Known;
  readonly now: Date;
  readonly messages: Message[] = [];
  #unit: UnitRow;
  readonly #legs = new Map<string, LegRow>();
  readonly #contents = new Map<number, ContentRow>();
  readonly #writes: Write[] = [];
  readonly #arrivals = new Set<string>();
  /** What the step tells beyond the rows. */
  #facts: Partial<StatusFacts> = {};
  #rest: string | undefined;

  constructor(known: Known, now: Date) {
    this.known = known;
    this.now = now;
    this.#unit = known.unit;
  }

  get at(): string {
    return this.now.toISOString();
  }

  get unit(): UnitRow {
    return this.#unit;
  }

  /** As they are after this step. */
  legs(): ReadonlyMap<string, LegRow> {
    return new Map([...this.known.legs, ...this.#legs]);
  }

  content(number: number): ContentRow {
    const content = this.#contents.get(number) ?? this.known.contents.get(number);
    if (content === undefined) throw new Error(`content ${number} of ${this.known.subject.name} is not there`);
    return content;
  }

  /** Rows that still fit; the unit, the subject and two legs of every stage are counted already. Two stay in reserve. */
  room(): number {
    return mostActions - 2 - this.#unit.stages.length * 2 - 2 - this.#writes.length;
  }

  hasChanged(): boolean {
    return this.#unit !== this.known.unit || this.#legs.size + this.#writes.length > 0;
  }

  edit(change: Partial<UnitRow>): void {
    this.#unit = { ...this.#unit, ...change };
  }

  /** Takes members away that `edit` can only replace. */
  drop(...members: readonly OptionalMember[]): void {
    const kept = Object.entries(this.#unit).filter(([name]) => !members.some((member) => member === name));
    // It is a unit still: none of them is required.
    this.#unit = Object.fromEntries(kept) as unknown as UnitRow;
  }

  editStage(name: string, change: (stage: UnitStage) => UnitStage): void {
    this.edit({ stages: this.#unit.stages.map((stage) => (stage.name === name ? change(stage) : stage)) });
  }

  countArrivals(change: Partial<UnitRow["arrivals"]>): void {
    const { waiting, changing, failed } = this.#unit.arrivals;
    this.edit({
      arrivals: {
        waiting: Math.max(0, waiting + (change.waiting ?? 0)),
        changing: Math.max(0, changing + (change.changing ?? 0)),
        failed: Math.max(0, failed + (change.failed ?? 0)),
      },
    });
  }

  leg(ref: { readonly content: number; readonly stage: string; readonly seal: number }): LegRow | undefined {
    return this.#legs.get(legKey(ref)) ?? this.known.legs.get(legKey(ref));
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
    this.#writes.push({ put: content, when: "absent" });
    const { number, identity, revision, createdAt: at } = content;
    const named = new Set(this.#unit.stages.flatMap(({ on, moving }) => [on, moving?.content]));
    const ledger = [{ number, identity, revision, at }, ...this.#unit.ledger];
    this.edit({ last: number, ledger: ledger.filter((entry, index) => index < keptLedger || named.has(entry.number)) });
  }

  /** The leg lets another content in, or ends with its stage. */
  supersede(leg: LegRow, by: number | undefined): void {
    this.putLeg(superseded(this.leg(leg) ?? leg, by, this.at));
    this.report(leg);
  }

  /** What it says is another thing now: people are told. */
  report(leg: LegRow): void {
    this.messages.push({ to: "report", about: { kind: "Rollout", subject: this.known.subject, leg: refOf(leg) } });
  }

  putSlot(slot: Omit<SlotRow, keyof Row>, before?: SlotRow): void {
    const row: SlotRow = {
      ...slot,
      ...keys.slot(this.known.subject, slot.cluster),
      type: "Slot",
      schema: rowSchema,
      version: (before?.version ?? 0) + 1,
    };
    this.#writes.push({ put: row, when: before === undefined ? "absent" : { version: before.version } });
    if (before === undefined) this.#countSlot(slot, 1);
    else if (isSlotOfArrival(before) !== isSlotOfArrival(slot) || before.stage !== slot.stage) {
      this.#countSlot(before, -1);
      this.#countSlot(slot, 1);
    }
  }

  dropSlot(slot: SlotRow): void {
    this.delete(slot);
    this.#countSlot(slot, -1);
  }

  #countSlot(slot: Pick<SlotRow, "leg" | "stage">, by: number): void {
    const isStage = this.#unit.stages.some(({ name }) => name === slot.stage);
    if (isSlotOfArrival(slot) || !isStage) this.countArrivals({ changing: by });
    else this.editStage(slot.stage, (stage) => ({ ...stage, changing: Math.max(0, stage.changing + by) }));
  }

  /** What became of a target, out of the state that it was counted in. */
  record(leg: LegRow, target: { readonly cluster: string; readonly order: number }, from: TargetState, to: Outcome) {
    const { cluster, order } = target;
    const counted = this.count(leg, { [from]: -1, [to.state]: 1 });
    const row: TargetRow = {
      ...keys.target(this.known.subject, leg, cluster),
      type: "Target",
      schema: rowSchema,
      version: 1,
      leg: refOf(leg),
      order,
      cluster,
      state: to.state,
      reason: to.reason,
      attempts: to.attempts ?? {},
      endedAt: this.at,
      ...defined({ assignedAt: to.assignedAt, preexisting: to.preexisting }),
    };
    this.#writes.push({ put: row, when: "absent" });
    if (to.state === "Unreachable") this.putLeg({ ...counted, away: [...counted.away, cluster].slice(-keptFailures) });
    if (to.state !== "Failed") return;
    this.putLeg({
      ...counted,
      failures: [...counted.failures, { cluster, reason: excerpt(to.reason, keptText) }].slice(-keptFailures),
      preexistingFailures: counted.preexistingFailures + (to.preexisting === true ? 1 : 0),
    });
  }

  /** Something else became of a target that had failed, or did not answer. */
  amend(target: TargetRow, to: Pick<Outcome, "state" | "reason">): void {
    const leg = this.leg(target.leg);
    if (leg === undefined || leg.endedAt !== undefined) return;
    this.putLeg({
      ...this.#forgiven(leg, target),
      unrendered: leg.unrendered.filter((order) => order !== target.order),
    });
    this.count(leg, { [target.state]: -1, [to.state]: 1 });
    const { preexisting: _preexisting, ...kept } = target;
    this.put({ ...kept, ...to, endedAt: this.at, version: target.version + 1 } as TargetRow, target);
  }

  /** The target has another turn: what is known of it is forgotten. */
  retry(target: TargetRow): void {
    const leg = this.leg(target.leg);
    if (leg === undefined || leg.endedAt !== undefined) return;
    this.delete(target);
    const forgiven = this.#forgiven(leg, target);
    const unrendered = leg.unrendered.filter((order) => order !== target.order);
    this.putLeg({ ...forgiven, unrendered, returned: [...leg.returned, target.order] });
    this.count(leg, { [target.state]: -1, Waiting: 1 });
  }

  /** The leg as if the target had never failed, or been away, but for its counts. */
  #forgiven(leg: LegRow, { cluster, preexisting, state }: TargetRow): LegRow {
    const isPreexisting = state === "Failed" && preexisting === true;
    return {
      ...leg,
      away: leg.away.filter((name) => name !== cluster),
      failures: leg.failures.filter((failure) => failure.cluster !== cluster),
      preexistingFailures: leg.preexistingFailures - (isPreexisting ? 1 : 0),
    };
  }

  /** Arrivals that were found, whether they can be read or not: one cluster has one of a state at most. */
  see(rows: readonly Row[]): void {
    for (const row of rows) if (keys.arrival.parse(row) !== undefined) this.#arrivals.add(keyText(row));
  }

  putArrival(cluster: string, state: ArrivalState, arrival: Pick<ArrivalRow, "why" | "reason" | "stage">): void {
    const key = keys.arrival(this.known.subject, state, cluster);
    if (this.#arrivals.has(keyText(key))) return;
    const row: ArrivalRow = {
      ...key,
      type: "Arrival",
      schema: rowSchema,
      version: 1,
      cluster,
      since: this.at,
      ...arrival,
    };
    this.#writes.push({ put: row, when: "absent" });
    this.#arrivals.add(keyText(key));
    this.#countArrival(row, state, 1);
  }

  /** What its stage has passed left it behind; now it is an arrival. */
  bringBack(cluster: string, name: string, from: "failed" | "unreachable"): void {
    const { waiting } = this.#unit.arrivals;
    this.putArrival(cluster, "waiting", { why: "returned", reason: "" });
    if (this.#unit.arrivals.waiting === waiting) return;
    this.editStage(name, ({ behind = { failed: 0, unreachable: 0 }, ...stage }) => ({
      ...stage,
      behind: { ...behind, [from]: Math.max(0, behind[from] - 1) },
    }));
  }

  dropArrival(arrival: ArrivalRow): void {
    this.delete(arrival);
    this.#arrivals.delete(keyText(arrival));
    this.#countArrival(arrival, keys.arrival.read(arrival).state, -1);
  }

  #countArrival({ stage = "" }: ArrivalRow, state: ArrivalState, by: number): void {
    this.countArrivals({ [state]: by });
    // What was found of those that wait was of others.
    if (state === "waiting") this.drop("arrivalsHeld");
    if (state !== "failed") return;
    this.editStage(stage, (one) => ({ ...one, failedArrivals: Math.max(0, one.failedArrivals + by) }));
  }

  /** It is left alone, and looked at again whenever everybody is. */
  cannotRead(cluster: string): void {
    const { unreadable = [] } = this.#unit;
    if (unreadable.includes(cluster) || unreadable.length >= keptUnreadable) return;
    this.edit({ unreadable: [...unreadable, cluster] });
  }

  put(row: Row, before: Row | undefined): void {
    this.#writes.push({ put: row, when: before === undefined ? "absent" : { version: before.version } });
  }

  delete(row: Row): void {
    this.#writes.push({ delete: { pk: row.pk, sk: row.sk }, when: { version: row.version } });
  }

  write(write: Write): void {
    this.#writes.push(write);
  }

  tell(facts: Partial<StatusFacts>): void {
    this.#facts = { ...this.#facts, ...facts };
  }

  /** Nobody needs to look before. */
  restUntil(at: string): void {
    this.#rest = at;
  }

  /** The subject's row with the status that this step leaves; a check of it where nothing is to be said. */
  status(unit: UnitRow): Write {
    const facts = statusFacts({ ...this.known, unit, legs: this.legs(), contents: this.#contentsAfter() }, this.now);
    return subjectWrite(this.known.row, { ...facts, ...this.#facts });
  }

  #contentsAfter(): ReadonlyMap<number, ContentRow> {
    return new Map([...this.known.contents, ...this.#contents]);
  }

  /** @returns what is known after it. @throws ConflictError when somebody else wrote what this was decided on. */
  async commit(table: Table): Promise<Known> {
    const { unit: before, row } = this.known;
    const { deadline = "~" } = this.#unit;
    const at = this.#rest ?? [watchdogAt(this.now, 0), deadline].sort()[0];
    const unit = { ...due(this.#unit, at), version: before.version + 1 };
    const legs = [...this.#legs.values()].map((leg) => {
      const old = this.known.legs.get(legKey(leg));
      return { old, leg: { ...leg, version: (old?.version ?? 0) + 1 } };
    });
    const status = this.status(unit);
    await table.write([
      { put: unit, when: before.version === 0 ? "absent" : { version: before.version } },
      status,
      ...legs.map(
        ({ old, leg }) => ({ put: leg, when: old === undefined ? "absent" : { version: old.version } }) as const,
      ),
      ...this.#writes,
    ]);
    const named = unit.stages.flatMap(({ moving, passed }) => [moving, passed]);
    const kept = [...this.legs(), ...legs.map(({ leg }) => [legKey(leg), leg] as const)];
    return {
      ...this.known,
      unit,
      row: "put" in status ? (status.put as Known["row"]) : row,
      legs: new Map(kept.filter(([, leg]) => named.some((ref) => isSameLeg(ref, leg)))),
      contents: this.#contentsAfter(),
    };
  }
}

function isSlotOfArrival({ leg }: Pick<SlotRow, "leg">): boolean {
  return leg === undefined;
}
