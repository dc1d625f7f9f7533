import { expect } from "vitest";
import { durationSeconds, resolveCount } from "#shared/fleet/kinds/quantities.ts";
import { later } from "#shared/fleet/rows/due.ts";
import { keys, type Subject } from "#shared/fleet/rows/keys.ts";
import type { SyncGroupRow } from "#shared/fleet/rows/object-rows.ts";
import type { RolloutRow, TargetRow, TargetState } from "#shared/fleet/rows/rollout-rows.ts";
import { targetStates } from "#shared/fleet/rows/rollout-rows.ts";
import { keyText, type Row } from "#shared/fleet/rows/row.ts";
import type { Observed, Phase, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Write } from "#shared/ports.ts";
import { MemoryTable } from "#test/support/memory-table.ts";

const changingStates: readonly TargetState[] = ["Assigned", "Applying", "Verifying"];
const unfinishedStates: readonly TargetState[] = ["Waiting", "Rendering", ...changingStates];

interface Change {
  readonly before: Row | undefined;
  readonly after: Row | undefined;
}

/**
 * Sees every write in the order in which it took effect, and holds what the design promises against it. It keeps a copy
 * of its own and believes nothing that the planner writes about itself.
 */
export class PlannerWatch {
  readonly #subject: Subject;
  readonly #now: () => Date;
  readonly #rows = new Map<string, Row>();
  /** Attempts that came to an end: ready, failed or unreachable as observed, failed as judged. */
  readonly #ended = new Set<string>();
  /** What was observed last of those that were forgotten with their Cluster: a planner that read it before may say so. */
  readonly #forgotten = new Map<string, Observed>();
  /** Suspensions that the planner has seen, from look to look. */
  readonly #pauses: { readonly from: string; readonly to: string }[] = [];

  constructor(subject: Subject, now: () => Date) {
    this.#subject = subject;
    this.#now = now;
  }

  written(writes: readonly Write[]): void {
    const changes = writes.flatMap((write) => this.#apply(write));
    for (const { after } of changes) this.#noteEnds(after);
    const rollouts = changes.filter((change) => change.after?.type === "Rollout");
    for (const { before, after } of rollouts) this.#checkRollout(before as RolloutRow | undefined, after as RolloutRow);
    for (const { before, after } of changes) {
      if (after?.type === "Target") this.#checkTarget(before as TargetRow | undefined, after as TargetRow);
      if (after?.type !== "SyncOnCluster") continue;
      const sync = after as SyncRow;
      if ((before as SyncRow | undefined)?.desired.attempt === sync.desired.attempt) continue;
      this.#checkAssignment(before as SyncRow | undefined, sync, rollouts);
    }
  }

  rowsOf<R extends Row>(type: R["type"]): R[] {
    return [...this.#rows.values()].filter((row): row is R => row.type === type);
  }

  /** Clusters whose workers may be changing them, and the loosest bound among the rollouts they are changing for. */
  changing(started: (row: SyncRow) => boolean = () => true): {
    readonly clusters: Set<string>;
    readonly bound: number;
  } {
    const moving = this.rowsOf<SyncRow>("SyncOnCluster").filter((row) => this.#mayChange(row) && started(row));
    const rollouts = [...new Set(moving.map((row) => row.desired.rollout))].flatMap(
      (number) => this.rollout(number) ?? [],
    );
    return { clusters: new Set(moving.map((row) => row.cluster)), bound: Math.max(1, ...rollouts.map(boundOf)) };
  }

  rollout(number: number): RolloutRow | undefined {
    return this.#rows.get(keyText(keys.rollout(this.#subject, number))) as RolloutRow | undefined;
  }

  targets(number: number): TargetRow[] {
    const prefix = `${keys.rollout(this.#subject, number).sk}#`;
    return this.rowsOf<TargetRow>("Target").filter((row) => row.sk.startsWith(prefix));
  }

  #apply(write: Write): Change[] {
    if ("check" in write) return [];
    const key = keyText("put" in write ? write.put : "delete" in write ? write.delete : write.update);
    const before = this.#rows.get(key);
    if ("delete" in write) {
      this.#rows.delete(key);
      return [{ before, after: undefined }];
    }
    const after = "put" in write ? write.put : ({ ...before, ...write.update, ...write.set } as Row);
    this.#rows.set(key, after);
    const observed = after.type === "SyncOnCluster" ? (before as SyncRow | undefined)?.observed : undefined;
    if (observed !== undefined && this.#isForgotten(after as SyncRow)) this.#forgotten.set(key, observed);
    return [{ before, after }];
  }

  #noteEnds(after: Row | undefined): void {
    if (after?.type === "SyncOnCluster") {
      const { observed, cluster, name } = after as SyncRow;
      const ends = ["Ready", "Failed", "Unreachable", "Reachable", "Gone"];
      if (observed !== undefined && ends.includes(observed.phase)) this.#end(cluster, name, observed.attempt);
    }
    if (after?.type === "Target" && (after as TargetRow).state === "Failed") {
      const { cluster, attempts } = after as TargetRow;
      for (const [name, attempt] of Object.entries(attempts)) this.#end(cluster, name, attempt);
    }
  }

  #end(cluster: string, name: string, attempt: number): void {
    this.#ended.add(`${cluster} ${name} ${attempt} ${this.#life(cluster)}`);
  }

  /** Attempts begin again at 1 when a Cluster is registered anew. */
  #life(cluster: string): string {
    const fleet = this.#rows.get(keyText(keys.fleet(cluster)));
    return fleet === undefined ? "" : String((fleet as Row & { uid: string }).uid);
  }

  /** The API's own doing, when a Cluster is deleted. */
  #isForgotten({ cluster, desired }: SyncRow): boolean {
    return desired.action === "orphan" && !this.#rows.has(keyText(keys.fleet(cluster)));
  }

  #mayChange(row: SyncRow): boolean {
    const { desired, cluster, name } = row;
    if (desired.action === "orphan") return false;
    if (this.#ended.has(`${cluster} ${name} ${desired.attempt} ${this.#life(cluster)}`)) return false;
    return !this.#isGivenUp(this.rollout(desired.rollout));
  }

  /** A superseded rollout's attempts have one deadline more; a suspension before it is over starts it anew. */
  #isGivenUp(rollout: RolloutRow | undefined): boolean {
    if (rollout?.phase !== "Superseded" || rollout.endedAt === undefined) return false;
    const seconds = durationSeconds(rollout.strategy.progressDeadline) ?? 0;
    let until = later(rollout.endedAt, seconds);
    for (const { from, to } of this.#pauses) if (from < until && to > rollout.endedAt) until = later(to, seconds);
    const open = this.rowsOf<RolloutRow>("Rollout").find((other) => other.endedAt === undefined);
    if (open?.pausedAt !== undefined && open.pausedAt < until) return false;
    return until <= this.#now().toISOString();
  }

  /** What was decided before a suspend, a halt or a newer rollout is never written after it. */
  #checkAssignment(before: SyncRow | undefined, sync: SyncRow, rollouts: readonly Change[]): void {
    const what = `${sync.name} on ${sync.cluster}, attempt ${sync.desired.attempt} of rollout ${sync.desired.rollout}`;
    expect(sync.desired.attempt, what).toBe((before?.desired.attempt ?? 0) + 1);
    if (this.#isForgotten(sync)) return;
    const group = this.#rows.get(keyText(keys.object(this.#subject.namespace, this.#subject.kind, this.#subject.name)));
    expect((group as SyncGroupRow | undefined)?.operations.suspended, `${what}: suspended`).toBeUndefined();
    const change = rollouts.find(({ after }) => (after as RolloutRow).number === sync.desired.rollout);
    const [old, rollout] = [change?.before as RolloutRow | undefined, change?.after as RolloutRow | undefined];
    if (old === undefined || rollout === undefined) throw new Error(`${what}: not with its rollout`);
    expect(["Sealed", "Running"], what).toContain(old.phase);
    expect(["Running", "Complete"], what).toContain(rollout.phase);
    const target = this.targets(rollout.number).find((other) => other.cluster === sync.cluster);
    expect(target?.stage, `${what}: stage has not begun`).toBeLessThanOrEqual(rollout.stage);
    if (sync.desired.action === "orphan") return;
    expect(failuresOf(old), `${what}: after ${failuresOf(old)} failures`).toBeLessThanOrEqual(
      resolveCount(rollout.strategy.maxFailures, rollout.selected),
    );
    const stage = rollout.stages[rollout.stage];
    const ofStage = stage?.maxConcurrent === undefined ? undefined : resolveCount(stage.maxConcurrent, stage.size);
    const { clusters } = this.changing();
    const names = [...clusters].join(", ");
    expect(clusters.size, `${what}: ${names} are changing`).toBeLessThanOrEqual(boundOf(rollout));
    if (ofStage !== undefined) expect(rollout.outstanding.length, what).toBeLessThanOrEqual(Math.max(1, ofStage));
  }

  #checkTarget(before: TargetRow | undefined, target: TargetRow): void {
    if (before?.state === target.state) return;
    const isSaid = ["Applying", "Verifying", "Failed", "Unreachable"].includes(target.state);
    if (isSaid && !/^(DeadlineExceeded|RenderFailed)/.test(target.reason)) {
      const seen = this.#observationsOf(target);
      expect(
        seen.length,
        `${target.cluster} is ${target.state}, and nobody said so about its attempts`,
      ).toBeGreaterThan(0);
      if (target.state === "Failed" || target.state === "Unreachable") expect(seen).toContain(target.state);
    }
    if (target.state !== "Succeeded" || Object.keys(target.attempts).length === 0) return;
    for (const [name, attempt] of Object.entries(target.attempts)) {
      const row = this.rowsOf<SyncRow>("SyncOnCluster").find(
        (sync) => sync.cluster === target.cluster && sync.name === name,
      );
      if (row === undefined || row.desired.action !== "apply") continue;
      const facts = {
        attempt: row.observed?.attempt,
        phase: row.observed?.phase,
        digest: row.observed?.applied?.renderDigest,
      };
      expect(facts, `${name} on ${target.cluster} succeeded`).toEqual({
        attempt,
        phase: "Ready",
        digest: row.desired.renderDigest,
      });
    }
  }

  /** The phases that were observed of the attempts this target is about. */
  #observationsOf({ cluster, attempts }: TargetRow): Phase[] {
    const rows = this.rowsOf<SyncRow>("SyncOnCluster").filter((row) => row.cluster === cluster);
    return rows.flatMap((row) => {
      const observed = row.observed ?? this.#forgotten.get(keyText(row));
      return observed !== undefined && observed.attempt === attempts[row.name] ? [observed.phase] : [];
    });
  }

  #checkRollout(before: RolloutRow | undefined, rollout: RolloutRow): void {
    const what = `rollout ${rollout.number} ${rollout.phase}`;
    if (before?.pausedAt !== undefined && rollout.pausedAt === undefined) {
      this.#pauses.push({ from: before.pausedAt, to: this.#now().toISOString() });
    }
    const sizes = rollout.stages.map((stage) => targetStates.reduce((sum, state) => sum + stage.counts[state], 0));
    expect(sizes, what).toEqual(rollout.stages.map((stage) => stage.size));
    expect(
      sizes.reduce((sum, size) => sum + size, 0),
      what,
    ).toBe(rollout.size);
    if (rollout.phase === "Planning" || rollout.phase === "Superseded") return;
    const targets = this.targets(rollout.number);
    expect(new Set(targets.map((target) => target.cluster)).size, what).toBe(rollout.size);
    for (const [index, stage] of rollout.stages.entries()) {
      const counts = Object.fromEntries(
        targetStates.map((state) => [state, targets.filter((t) => t.stage === index && t.state === state).length]),
      );
      expect(counts, `${what}, stage ${stage.name}`).toEqual(stage.counts);
    }
    const among = (states: readonly TargetState[]) =>
      targets
        .filter((target) => states.includes(target.state))
        .map((target) => target.order)
        .sort(byNumber);
    expect(rollout.outstanding.map((ref) => ref.order).sort(byNumber), what).toEqual(among(changingStates));
    expect(rollout.parked.map((ref) => ref.order).sort(byNumber), what).toEqual(among(["Unreachable"]));
    if (before === undefined || (before.stage === rollout.stage && rollout.phase !== "Complete")) return;
    const past = rollout.stages.slice(0, rollout.phase === "Complete" ? undefined : rollout.stage);
    const count = (state: TargetState) => past.reduce((sum, stage) => sum + stage.counts[state], 0);
    for (const state of unfinishedStates) expect(count(state), `${what}: ${state} left behind`).toBe(0);
    const { maxFailures, maxUnreachable } = rollout.strategy;
    expect(failuresOf(rollout), what).toBeLessThanOrEqual(resolveCount(maxFailures, rollout.selected));
    expect(count("Unreachable"), what).toBeLessThanOrEqual(resolveCount(maxUnreachable, rollout.selected));
  }
}

function byNumber(a: number, b: number): number {
  return a - b;
}

function boundOf(rollout: RolloutRow): number {
  return Math.max(1, resolveCount(rollout.strategy.maxConcurrent, rollout.selected));
}

function failuresOf(rollout: RolloutRow): number {
  return rollout.stages.reduce((sum, stage) => sum + stage.counts.Failed, 0) - rollout.preexistingFailures;
}

/** A memory table whose every write the watch sees. */
export class WatchedTable extends MemoryTable {
  readonly #watch: PlannerWatch;
  /** Writes that took effect. */
  effects = 0;

  constructor(watch: PlannerWatch) {
    super();
    this.#watch = watch;
  }

  override async write(writes: readonly Write[]): Promise<void> {
    await super.write(writes);
    this.effects++;
    this.#watch.written(writes);
  }
}
