import { expect } from "vitest";
import { resolveCount } from "#shared/fleet/kinds/quantities.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import type { OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import type { CatchUpRow, RolloutStateRow, SlotRow, StageRunRef } from "#shared/fleet/rows/rollout-rows.ts";
import { keyText, type Row } from "#shared/fleet/rows/row.ts";
import type { ModelServers } from "#test/support/planner-model/model-servers.ts";

/** Of a row, in the order in which they took effect. */
export interface Change {
  readonly before: Row | undefined;
  readonly after: Row | undefined;
}

interface Seen {
  readonly rolloutState: RolloutStateRow | undefined;
  readonly group: OwnerRow | undefined;
  readonly sizeOf: (stageRun: StageRunRef) => number | undefined;
  /** Who count what changes in a stage. */
  readonly servers: ModelServers;
}

/**
 * Knows in which stage each slot was given, and each arrival failed, by the name that the stage has now: one of which
 * nothing but the name is another is the same stage.
 */
export class StageWatch {
  /** By key of the row. */
  readonly #stages = new Map<string, string>();
  #names: readonly string[] = [];
  /** By the name that a stage has now, the one that it had first. */
  #ids = new Map<string, string>();
  /** What the stages select by; and as the planner wrote it down. */
  #selection = "";
  #by = "";

  written(changes: readonly Change[], seen: Seen): void {
    for (const { before, after } of changes) {
      const row = after ?? before;
      if (row === undefined || !isOfStage(row)) continue;
      if (after === undefined) this.#stages.delete(keyText(row));
      else if (!isUnrendered(row)) this.#stages.set(keyText(row), row.stage ?? "");
    }
    this.#rename(seen);
    this.#noteBounds(seen);
    const slots = changes.flatMap(({ before, after }) =>
      after?.type === "Slot" ? [{ before: before as SlotRow | undefined, after: after as SlotRow }] : [],
    );
    // What is at work already is counted by another stage from now on.
    const adopted = slots.filter(({ before, after }) => before?.stage !== after.stage && isSameWork(before, after));
    for (const { after } of changes) if (after?.type === "RolloutState") this.#checkCounts(after as RolloutStateRow);
    for (const { before, after } of slots)
      if (before?.stage !== after.stage && !isSameWork(before, after)) {
        const others = adopted.filter((one) => one.after.stage === after.stage).length;
        this.#checkGiven(after, { ...seen, others });
      }
  }

  /** The same for a stage whatever its name. */
  idOf(name: string): string {
    return this.#ids.get(name) ?? name;
  }

  #noteBounds({ rolloutState, group, sizeOf, servers }: Seen): void {
    if (rolloutState === undefined || group === undefined) return;
    const { stages } = relationOf(group).rollout;
    for (const { name, members, updatingTo } of rolloutState.stages) {
      const own = stages.find((one) => one.name === name)?.maxConcurrent;
      const size = Math.max(members, (updatingTo && sizeOf(updatingTo)) ?? 0);
      const bound = own === undefined ? Number.POSITIVE_INFINITY : Math.max(1, resolveCount(own, size));
      servers.allow(bound, this.idOf(name));
    }
  }

  /** Other members may have other stages: the planner has just read them. */
  #rename({ rolloutState, group }: Seen): void {
    const by = rolloutState?.selected?.by;
    if (by === undefined || by === this.#by || group === undefined) return;
    const { clusters, rollout } = relationOf(group);
    const names = rollout.stages.map(({ name }) => name);
    const selection = JSON.stringify([clusters, rollout.stages.map((stage) => stage.clusters ?? "others")]);
    const isSame = selection === this.#selection;
    const fresh = names.filter((name, index) => name !== this.#names[index]);
    const areRenamed = isSame && fresh.every((name) => !this.#names.includes(name));
    for (const [key, stage] of this.#stages) {
      const name = areRenamed ? (names[this.#names.indexOf(stage)] ?? stage) : stage;
      this.#stages.set(key, name);
      // A stage that is there again has its slots, and tries everybody anew.
      if (!names.includes(name) && isFailed(key)) this.#stages.delete(key);
    }
    if (areRenamed)
      this.#ids = new Map(names.map((name, index) => [name, this.idOf(this.#names[index] ?? name)] as const));
    [this.#names, this.#selection, this.#by] = [names, selection, by];
  }

  /** What was given in a stage is counted there, once it goes by its name. */
  #checkCounts({ stages, jobs }: RolloutStateRow): void {
    if (jobs.some((job) => job.do === "rename")) return;
    for (const { name, changing, catchingUp = 0 } of stages)
      expect(changing + catchingUp, `slots given in ${name}`).toBe(this.#count(slotKeys, name));
  }

  /** Whoever is given a slot has room under its stage's own bound, and comes to none where too many failed that came. */
  #checkGiven(
    { cluster, stageRun, stage: name }: SlotRow,
    { rolloutState, group, sizeOf, others }: Seen & { readonly others: number },
  ): void {
    const stage = rolloutState?.stages.find((one) => one.name === name);
    if (stage === undefined || group === undefined) return;
    const { maxFailures, stages } = relationOf(group).rollout;
    const own = stages.find((one) => one.name === name)?.maxConcurrent;
    const size = stageRun === undefined ? stage.members : (sizeOf(stageRun) ?? 0);
    const bound = own === undefined ? Number.POSITIVE_INFINITY : Math.max(1, resolveCount(own, size));
    expect(this.#count(slotKeys, name) - others, `changing in ${name} with ${cluster}`).toBeLessThanOrEqual(bound);
    if (stageRun !== undefined) return;
    // One is free. What could not be rendered says nothing about the rollout.
    const allowed = Math.max(1, resolveCount(maxFailures, stage.members));
    expect(this.#count(failedKeys, name), `failed when ${cluster} comes to ${name}`).toBeLessThanOrEqual(allowed);
  }

  #count(kind: string, stage: string): number {
    return [...this.#stages].filter(([key, name]) => name === stage && key.includes(kind)).length;
  }
}

/** Of slots, and of arrivals that failed. */
const [slotKeys, failedKeys] = ["|SLOT#", "|CATCHUP#failed#"] as const;

function isSameWork(before: SlotRow | undefined, after: SlotRow | undefined): boolean {
  return JSON.stringify(before?.attempts) === JSON.stringify(after?.attempts);
}

function isUnrendered(row: SlotRow | CatchUpRow): boolean {
  return row.type === "CatchUp" && row.reason?.startsWith("RenderFailed") === true;
}

function isFailed(key: string): boolean {
  return key.includes(failedKeys);
}

function isOfStage(row: Row): row is SlotRow | CatchUpRow {
  return row.type === "Slot" || isFailed(keyText(row));
}
