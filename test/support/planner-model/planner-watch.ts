import { expect } from "vitest";
import { resolveCount } from "#shared/fleet/kinds/quantities.ts";
import { frozenIn, legKey } from "#shared/fleet/rollout/legs.ts";
import { relationOf } from "#shared/fleet/rollout/plan.ts";
import { keys, type Subject, syncName } from "#shared/fleet/rows/keys.ts";
import type { SubjectRow } from "#shared/fleet/rows/object-rows.ts";
import {
  type ArrivalRow,
  type ContentRow,
  type LegRef,
  type LegRow,
  type SlotRow,
  type TargetRow,
  type TargetState,
  targetStates,
  type UnitRow,
} from "#shared/fleet/rows/rollout-rows.ts";
import { keyText, type Row } from "#shared/fleet/rows/row.ts";
import type { Observed, Phase, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Write } from "#shared/ports.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { checkGivenBack, checkUnwanted, GivenBackWatch } from "#test/support/planner-model/given-back-watch.ts";
import type { ModelServers } from "#test/support/planner-model/model-servers.ts";
import { SkippedWatch } from "#test/support/planner-model/skipped-watch.ts";
import { type Change, StageWatch } from "#test/support/planner-model/stage-watch.ts";

/**
 * Sees every write in the order in which it took effect, and holds what the design promises against it. It keeps a copy of
 * its own, and counts rows where the planner keeps numbers; who is changing is counted by the API servers.
 */
export class PlannerWatch {
  readonly #subject: Subject;
  readonly #servers: ModelServers;
  readonly #stages = new StageWatch();
  readonly givenBack = new GivenBackWatch();
  readonly skipped = new SkippedWatch();
  readonly #rows = new Map<string, Row>();
  readonly #byType = new Map<string, Map<string, Row>>();
  /** By leg: how many of its targets are in which state. */
  readonly #targets = new Map<string, Map<TargetState, number>>();
  /** By content and stage. */
  readonly #before = new Map<string, Set<string>>();
  /** What was observed last of those that were forgotten with their Cluster: a planner that read it before may say so. */
  readonly #forgotten = new Map<string, Observed>();

  constructor(subject: Subject, servers: ModelServers) {
    this.#subject = subject;
    this.#servers = servers;
  }

  written(writes: readonly Write[]): void {
    const changes = writes.flatMap((write) => this.#apply(write));
    this.#noteBound();
    const unit = this.unit();
    this.givenBack.written(changes, this);
    this.skipped.written(changes);
    const sizeOf = (leg: LegRef) => this.#leg(leg)?.size;
    this.#stages.written(changes, { unit, group: this.group(), sizeOf, servers: this.#servers });
    const ids = new Set(unit?.stages.map(({ name }) => this.#stages.idOf(name)));
    for (const before of this.#before.values()) for (const id of before) if (!ids.has(id)) before.delete(id);
    for (const { before, after } of changes) {
      if (before === undefined && after?.type === "Leg") this.#noteOrder(after as LegRow, unit);
      if (after?.type === "Target") this.#checkTarget(after as TargetRow);
      if (after?.type === "Leg") this.#checkLeg(after as LegRow);
      if (after?.type === "Unit") this.#checkUnit(before as UnitRow | undefined, after as UnitRow);
      if (after?.type !== "SyncOnCluster") continue;
      const sync = after as SyncRow;
      if ((before as SyncRow | undefined)?.desired.attempt === sync.desired.attempt) continue;
      this.#checkAssignment(before as SyncRow | undefined, sync, { unit, changes });
    }
  }

  rowsOf<R extends Row>(type: R["type"]): R[] {
    return [...(this.#byType.get(type)?.values() ?? [])] as R[];
  }

  unit(): UnitRow | undefined {
    return this.rowsOf<UnitRow>("Unit")[0];
  }

  group(): SubjectRow | undefined {
    const { namespace, kind, name } = this.#subject;
    return this.#rows.get(keyText(keys.object(namespace, kind, name))) as SubjectRow | undefined;
  }

  slots(): SlotRow[] {
    return this.rowsOf<SlotRow>("Slot");
  }

  target(leg: LegRef, cluster: string): TargetRow | undefined {
    return this.#rows.get(keyText(keys.target(this.#subject, leg, cluster))) as TargetRow | undefined;
  }

  #leg(leg: LegRef): LegRow | undefined {
    return this.#rows.get(keyText(keys.leg(this.#subject, leg))) as LegRow | undefined;
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
    if (observed !== undefined && this.#isForgotten(after as SyncRow)) this.#forgotten.set(key, observed);
    return [{ before, after }];
  }

  #count({ leg, state }: TargetRow, more: 1 | -1): void {
    const counts = this.#targets.get(legKey(leg)) ?? new Map<TargetState, number>();
    this.#targets.set(legKey(leg), counts.set(state, (counts.get(state) ?? 0) + more));
  }

  /** What the spec says, of the clusters that the planner knows to be members. */
  #noteBound(): void {
    const [group, unit] = [this.group(), this.unit()];
    if (group === undefined || unit === undefined) return;
    const members = unit.stages.reduce((sum, stage) => sum + stage.members, 0);
    this.#servers.allow(Math.max(1, resolveCount(relationOf(group).rollout.maxConcurrent, members)));
  }

  /** The API's own doing, when a Cluster is deleted. */
  #isForgotten({ cluster, desired }: SyncRow): boolean {
    return desired.action === "orphan" && !this.#rows.has(keyText(keys.fleet(cluster)));
  }

  /** What was decided before a suspend or a halt is never written after it, and nothing without a slot. */
  #checkAssignment(
    before: SyncRow | undefined,
    sync: SyncRow,
    { unit, changes }: { readonly unit: UnitRow | undefined; readonly changes: readonly Change[] },
  ): void {
    const { cluster, name, desired } = sync;
    const what = `${name} on ${cluster}, attempt ${desired.attempt} of content ${desired.rollout}`;
    expect(desired.attempt, what).toBe((before?.desired.attempt ?? 0) + 1);
    if (desired.action === "orphan") return;
    const slot = this.#rows.get(keyText(keys.slot(this.#subject, cluster))) as SlotRow | undefined;
    const stageId = slot && this.#stages.idOf(slot.stage);
    this.#servers.assigned(cluster, `${name} ${desired.token}`, stageId);
    const group = this.group();
    const isSuspended = group?.operations.suspended !== undefined && group.operations.deletion === undefined;
    expect(isSuspended, `${what}: suspended`).toBe(false);
    expect(slot?.attempts[name], `${what}: without a slot`).toBe(desired.attempt);
    if (desired.action === "delete") this.#checkRemoval(what, sync);
    if (unit === undefined) return;
    const stage = unit.stages.find((one) => one.name === slot?.stage);
    if (slot?.leg === undefined && stage !== undefined && desired.action === "apply")
      checkUnwanted(what, sync, stage, this);
    if (slot !== undefined && desired.action === "apply") checkGivenBack(what, sync, slot, this);
    if (slot?.leg === undefined) return;
    const leg = this.#leg(slot.leg) as LegRow;
    const old = changes.find(({ after }) => after === leg)?.before as LegRow | undefined;
    expect((old ?? leg).phase, `${what}: ${legKey(leg)}`).toBe("Moving");
    this.#checkOrder(what, leg, unit);
  }

  /** What the present spec wants is never deleted, whatever an older content says. */
  #checkRemoval(what: string, { name }: SyncRow): void {
    const group = this.group();
    if (group === undefined || group.operations.deletion !== undefined) return;
    const wanted = relationOf(group).templates.map((template) => syncName(this.#subject, template.name));
    expect(wanted, `${what}: is deleted, and wanted`).not.toContain(name);
  }

  /** Which stage was before one, and is there still, when that was given a content. */
  #noteOrder({ content, stage }: LegRow, unit: UnitRow | undefined): void {
    const key = `${content} ${this.#stages.idOf(stage)}`;
    if (this.#before.has(key)) return;
    const index = unit?.stages.findIndex(({ name }) => name === stage) ?? 0;
    const earlier = unit?.stages.slice(Math.max(0, index - 1), Math.max(0, index)) ?? [];
    this.#before.set(key, new Set(earlier.map(({ name }) => this.#stages.idOf(name))));
  }

  /** A stage starts a content only after the one before it passed that content, or a newer one. */
  #checkOrder(what: string, { content, stage }: LegRow, unit: UnitRow): void {
    const before = this.#before.get(`${content} ${this.#stages.idOf(stage)}`);
    for (const earlier of unit.stages.filter(({ name }) => before?.has(this.#stages.idOf(name))))
      expect(earlier.on ?? 0, `${what}: ${stage} before ${earlier.name}`).toBeGreaterThanOrEqual(content);
  }

  #checkTarget(target: TargetRow): void {
    const { state, cluster, attempts, reason } = target;
    const isJudged = /^(DeadlineExceeded|RenderFailed|NewerRow)/.test(reason);
    if ((state === "Failed" || state === "Unreachable") && !isJudged)
      expect(this.#observationsOf(target), `${cluster} is ${state}, and nobody said so`).toContain(state);
    if (state !== "Succeeded") return;
    // Sealed anew, a deletion finds nothing where it has been.
    if (this.#isFarewell(target.leg) && Object.keys(attempts).length === 0) return;
    expect(Object.keys(attempts).length, `${cluster} succeeded without anything`).toBeGreaterThan(0);
    for (const [name, attempt] of Object.entries(attempts)) {
      const row = this.#rows.get(keyText(keys.sync(cluster, this.#subject.namespace, name))) as SyncRow | undefined;
      if (row === undefined || row.desired.action !== "apply") continue;
      const { observed, desired } = row;
      const wasReady = observed?.phase === "Ready" || observed?.readyAt !== undefined;
      const facts = { attempt: observed?.attempt, wasReady, digest: observed?.applied?.renderDigest };
      const expected = { attempt, wasReady: true, digest: desired.renderDigest };
      expect(facts, `${name} on ${cluster} succeeded`).toEqual(expected);
    }
  }

  #isFarewell(leg: LegRef): boolean {
    const content = this.rowsOf<ContentRow>("Content").find(({ number }) => number === leg.content);
    return content?.plan.farewell !== undefined;
  }

  /** The phases that were observed of the attempts that this target is about. */
  #observationsOf({ cluster, attempts }: TargetRow): Phase[] {
    const names = Object.keys(attempts).map((name) => keyText(keys.sync(cluster, this.#subject.namespace, name)));
    return names.flatMap((name) => {
      const row = this.#rows.get(name) as SyncRow | undefined;
      if (row === undefined) return [];
      const observed = row.observed ?? this.#forgotten.get(keyText(row));
      return observed !== undefined && observed.attempt === attempts[row.name] ? [observed.phase] : [];
    });
  }

  /** Its counts are those of its rows, and sum to what was sealed. */
  #checkLeg(leg: LegRow): void {
    const what = `leg ${legKey(leg)} ${leg.phase}`;
    expect(
      targetStates.reduce((sum, state) => sum + leg.counts[state], 0),
      what,
    ).toBe(leg.size);
    if (leg.phase === "Superseded") return;
    const count = (state: TargetState) => this.#targets.get(legKey(leg))?.get(state) ?? 0;
    for (const state of ["Succeeded", "Unchanged", "Failed", "Unreachable", "Skipped", "Superseded"] as const)
      expect(leg.counts[state], `${what}: ${state}`).toBe(count(state));
    const slots = this.slots().filter((slot) => slot.parking === undefined && legKey(slot.leg ?? none) === legKey(leg));
    expect(leg.counts.Assigned, `${what}: slots`).toBe(slots.length);
    expect(leg.counts.Rendering, `${what}: rendering`).toBe(leg.rendering.length);
    const waiting = leg.size - leg.next + leg.aside.length + leg.returned.length + frozenIn(leg).length;
    expect(leg.counts.Waiting, `${what}: waiting`).toBe(waiting);
    if (leg.phase === "Passed") this.#checkPassed(what, { leg, count });
  }

  /** Evidence: somebody has it, and was seen to; and no more failed or stayed away than it may. */
  #checkPassed(
    what: string,
    { leg, count }: { readonly leg: LegRow; readonly count: (state: TargetState) => number },
  ): void {
    const group = this.group();
    // What went through a stage before the deletion came ends as any other.
    const farewell = this.#isFarewell(leg);
    expect(leg.counts.Waiting + leg.counts.Rendering + leg.counts.Assigned, `${what}: left behind`).toBe(0);
    const changed = leg.size - count("Unchanged") - count("Skipped");
    if (changed === 0 || group === undefined) return;
    const { maxFailures, maxUnreachable } = relationOf(group).rollout;
    if (!farewell) expect(count("Succeeded"), `${what}: without evidence`).toBeGreaterThan(0);
    const failures = count("Failed") - leg.preexistingFailures;
    expect(failures, `${what}: failures`).toBeLessThanOrEqual(farewell ? 0 : resolveCount(maxFailures, changed));
    const most = farewell ? 0 : resolveCount(maxUnreachable, changed, "up");
    expect(count("Unreachable"), `${what}: unreachable`).toBeLessThanOrEqual(most);
  }

  /** A stage goes back only where an edit gives it other clusters, and the slots that are counted are those that are there. */
  #checkUnit(before: UnitRow | undefined, unit: UnitRow): void {
    const counted = unit.stages.reduce((sum, { changing }) => sum + changing, unit.arrivals.changing);
    expect(counted, "slots of the unit").toBe(this.slots().length);
    for (const { name, changing, arriving = 0 } of unit.stages) {
      const own = this.slots().filter(({ stage }) => stage === name);
      const ofLegs = own.filter(({ leg }) => leg !== undefined).length;
      expect({ changing, arriving }, `slots of ${name}`).toEqual({ changing: ofLegs, arriving: own.length - ofLegs });
    }
    const clusters = new Set(this.slots().map(({ cluster }) => cluster));
    expect(clusters.size, "clusters with a slot").toBe(this.slots().length);
    if (before?.uid !== unit.uid) return;
    const isEdited = before.selected?.by !== unit.selected?.by;
    for (const { name, on = 0 } of isEdited ? [] : before.stages) {
      const after = unit.stages.find((stage) => stage.name === name);
      if (after !== undefined) expect(after.on ?? 0, `stage ${name} goes back`).toBeGreaterThanOrEqual(on);
    }
    const arrivals = this.rowsOf("Arrival").filter((row) => row.sk.startsWith("ARRIVAL#waiting#"));
    expect(unit.arrivals.waiting, "arrivals of the unit").toBe(arrivals.length);
    const failed = this.rowsOf<ArrivalRow>("Arrival").filter((row) => row.sk.startsWith("ARRIVAL#failed#"));
    expect(unit.arrivals.failed, "failed arrivals of the unit").toBe(failed.length);
    const away = this.rowsOf("Arrival").filter((row) => row.sk.startsWith("ARRIVAL#away#"));
    expect(unit.arrivals.away ?? 0, "arrivals of the unit that do not answer").toBe(away.length);
    for (const { name, failedArrivals } of unit.stages)
      expect(failedArrivals, `failed arrivals of ${name}`).toBeLessThanOrEqual(
        failed.filter(({ stage }) => stage === name).length,
      );
  }
}

const none = { content: 0, stage: "", seal: 0 };

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
