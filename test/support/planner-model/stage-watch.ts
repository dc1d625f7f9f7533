import { expect } from "vitest";
import { resolveCount } from "#shared/fleet/kinds/quantities.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import type { OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import type { CatchUpRow, RolloutStateRow, SlotRow, StageRunRef } from "#shared/fleet/rows/rollout-rows.ts";
import { keyText, type Row } from "#shared/fleet/rows/row.ts";
import type { ModelServers } from "#test/support/planner-model/model-servers.ts";

/** A change of a row. Changes are in the order of their effects. */
export interface Change {
  readonly before: Row | undefined;
  readonly after: Row | undefined;
}

interface Seen {
  readonly rolloutState: RolloutStateRow | undefined;
  readonly group: OwnerRow | undefined;
  readonly sizeOf: (stageRun: StageRunRef) => number | undefined;
  /** The API servers, which count the clusters that change in a stage. */
  readonly servers: ModelServers;
}

/**
 * Knows the stage of each slot and each failed catch-up, by the present name of the stage. A stage of which only the name
 * has changed is the same stage.
 */
export class StageWatch {
  /** The stages by key of the row. */
  readonly #stages = new Map<string, string>();
  #names: readonly string[] = [];
  /** The first name of a stage, by its present name. */
  #ids = new Map<string, string>();
  /** First names of stages that have other names: another stage with such a name is not the same. */
  readonly #left = new Set<string>();
  /** The selection of the stages, and its digest in the rollout state. */
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
    // Another stage counts this running work from now on.
    const adopted = slots.filter(({ before, after }) => before?.stage !== after.stage && isSameWork(before, after));
    for (const { after } of changes) if (after?.type === "RolloutState") this.#checkCounts(after as RolloutStateRow);
    for (const { before, after } of slots)
      if (before?.stage !== after.stage && !isSameWork(before, after)) {
        const others = adopted.filter((one) => one.after.stage === after.stage).length;
        this.#checkGiven(after, { ...seen, others });
      }
  }

  /** An id of the stage that stays when its name changes. */
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

  /** Follows renamed stages when the planner has read a new selection. */
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
      // A restored stage has its slots again, and tries all clusters again.
      if (!names.includes(name) && isFailed(key)) this.#stages.delete(key);
    }
    const idOf = (name: string, index: number) => {
      if (areRenamed) return this.idOf(this.#names[index] ?? name);
      return this.#names.includes(name) || !this.#left.has(name) ? this.idOf(name) : `${name} of ${by}`;
    };
    const ids = new Map(names.map((name, index) => [name, idOf(name, index)] as const));
    for (const [name, id] of ids) if (name !== id) this.#left.add(id);
    this.#ids = ids;
    [this.#names, this.#selection, this.#by] = [names, selection, by];
  }

  /** The counts of a stage include the slots given there, once the stage has its new name. */
  #checkCounts({ stages, jobs }: RolloutStateRow): void {
    if (jobs.some((job) => job.do === "rename")) return;
    for (const { name, changing, catchingUp = 0 } of stages)
      expect(changing + catchingUp, `slots given in ${name}`).toBe(this.#count(slotKeys, name));
  }

  /** A slot is within its stage's own bound, and is given for no catch-up in a stage with too many failed ones. */
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
    // One failure is always allowed. Failed renderings do not count.
    const allowed = Math.max(1, resolveCount(maxFailures, stage.members));
    expect(this.#count(failedKeys, name), `failed when ${cluster} catches up in ${name}`).toBeLessThanOrEqual(allowed);
  }

  #count(kind: string, stage: string): number {
    return [...this.#stages].filter(([key, name]) => name === stage && key.includes(kind)).length;
  }
}

/** Parts of the keys of slots and of failed catch-ups. */
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
