import { expect } from "vitest";
import { isDisabledFor } from "#shared/fleet/rollout/cluster-inputs.ts";
import { relationOf, stageOf } from "#shared/fleet/rollout/desired-plan.ts";
import { stageRunKey } from "#shared/fleet/rollout/stage-runs.ts";
import { syncName } from "#shared/fleet/rows/keys.ts";
import type { FleetRow, OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import type {
  CatchUpRow,
  RolloutRow,
  RolloutStateRow,
  SlotRow,
  StageRecord,
  StageRunRef,
  StageRunRow,
  TargetRow,
} from "#shared/fleet/rows/rollout-rows.ts";
import type { Row } from "#shared/fleet/rows/row.ts";
import { isAway, type SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Change } from "#test/support/planner-model/stage-watch.ts";
import { owner } from "#test/support/planner-world.ts";

/** The rows after each write. */
interface Watched {
  rowsOf<R extends Row>(type: R["type"]): R[];
  rolloutState(): RolloutStateRow | undefined;
  group(): OwnerRow | undefined;
  target(stageRun: StageRunRef, cluster: string): TargetRow | undefined;
}

/**
 * Knows the clusters that must get a template again: those that had lost it when it was put back while their stage run was
 * still removing it. They get it even if the newest rollout does not reach them.
 */
export class RestoredWatch {
  readonly #owed = new Map<string, Owed>();
  /** Clusters that changed after the snapshot of their stage run. The stage run may not include them. */
  readonly #drifted = new Map<string, number>();
  #writes = 0;
  readonly #snapshotAt = new Map<string, number>();

  written(changes: readonly Change[], watch: Watched): void {
    this.#writes++;
    for (const { before, after } of changes) {
      const row = after ?? before;
      if (row?.type === "Fleet") this.#drift((row as FleetRow).name);
      if (before === undefined && after?.type === "StageRun")
        this.#snapshotAt.set(stageRunKey(after as StageRunRow), this.#writes);
      if (row?.type === "SyncGroup") this.#respec(before as OwnerRow | undefined, after as OwnerRow | undefined, watch);
    }
  }

  #drift(cluster: string): void {
    this.#drifted.set(cluster, this.#writes);
    for (const [key, owed] of this.#owed) if (owed.cluster === cluster) this.#owed.delete(key);
  }

  #respec(before: OwnerRow | undefined, after: OwnerRow | undefined, watch: Watched): void {
    const [had, desired] = [templatesOf(before), templatesOf(after)];
    const fleet = new Map(watch.rowsOf<FleetRow>("Fleet").map((row) => [row.name, row]));
    for (const [key, { template, cluster }] of this.#owed)
      if (!desired.has(template) || isDisabled(after, template, fleet.get(cluster))) this.#owed.delete(key);
    if (before === undefined || after === undefined) return;
    // Clusters may move to other stages.
    if (selectionOf(before) !== selectionOf(after)) this.#owed.clear();
    else for (const name of desired.difference(had)) this.#owe(name, after, watch);
  }

  #owe(name: string, group: OwnerRow, watch: Watched): void {
    const { stages = [] } = watch.rolloutState() ?? {};
    const { rollout } = relationOf(group);
    for (const fleet of watch.rowsOf<FleetRow>("Fleet")) {
      const stage = stages.find((one) => one.name === stageOf(rollout, fleet));
      if (stage?.updatingTo === undefined || fleet.labels.fleet !== "web" || isDisabled(group, name, fleet)) continue;
      if ((this.#drifted.get(fleet.name) ?? 0) > (this.#snapshotAt.get(stageRunKey(stage.updatingTo)) ?? 0)) continue;
      const isTakenAway = isIn(watch, stage.current, name) && !isIn(watch, stage.updatingTo.rollout, name);
      const syncs = watch.rowsOf<SyncRow>("SyncOnCluster").filter(({ cluster }) => cluster === fleet.name);
      const has = (sync: string) => syncs.some((row) => row.name === sync && row.desired.action === "apply");
      const isGiven = syncs.some(({ desired }) => desired.action === "apply");
      if (isTakenAway && isGiven && !has(syncName(owner, name)))
        this.#owed.set(`${name}|${fleet.name}`, { template: name, cluster: fleet.name, rollout: stage.current ?? 0 });
    }
  }

  /** Checks an idle fleet that answers: a template is restored, or a catch-up row remains. @returns the number of templates. */
  check(watch: Watched): number {
    const standing = new Set(watch.rowsOf<CatchUpRow>("CatchUp").map(({ cluster }) => cluster));
    const syncs = new Map(watch.rowsOf<SyncRow>("SyncOnCluster").map((row) => [`${row.name}|${row.cluster}`, row]));
    for (const { template, cluster, rollout } of this.#owed.values()) {
      if (standing.has(cluster)) continue;
      const name = syncName(owner, template);
      const sync = syncs.get(`${name}|${cluster}`);
      const isNewer = (sync?.desired.rollout ?? 0) > rollout;
      const isThere = sync?.desired.action === "apply" && (isNewer || (sync.paused === undefined && !isAway(sync)));
      expect(isThere, `${name} on ${cluster} was put back, and is not restored`).toBe(true);
    }
    return this.#owed.size;
  }
}

interface Owed {
  readonly template: string;
  readonly cluster: string;
  /** The current rollout of its stage at that time. */
  readonly rollout: number;
}

/** No cluster gets a template restored that is disabled for it. */
export function checkRestored(what: string, { name, cluster, desired }: SyncRow, slot: SlotRow, watch: Watched): void {
  if (slot.restores !== desired.rollout) return;
  const fleet = watch.rowsOf<FleetRow>("Fleet").find((row) => row.name === cluster);
  const template = [...templatesOf(watch.group())].find((one) => syncName(owner, one) === name) ?? "";
  expect(isDisabled(watch.group(), template, fleet), `${what}: is restored, although it is disabled`).toBe(false);
}

/** A cluster whose stage run removed a template does not get it again from an older rollout, unless it is desired again. */
export function checkTakenAway(what: string, { name, cluster }: SyncRow, stage: StageRecord, watch: Watched): void {
  const { updatingTo } = stage;
  const group = watch.group();
  const template = [...templatesOf(group), ...rolloutTemplates(watch, stage.current)].find(
    (one) => syncName(owner, one) === name,
  );
  if (updatingTo === undefined || template === undefined || templatesOf(group).has(template)) return;
  const target = watch.target(updatingTo, cluster);
  const isGiven = target?.state === "Succeeded" && Object.keys(target.attempts).length > 0;
  if (isGiven)
    expect(isIn(watch, updatingTo.rollout, template), `${what}: was taken away by ${stageRunKey(updatingTo)}`).toBe(
      true,
    );
}

function isDisabled(group: OwnerRow | undefined, name: string, fleet: FleetRow | undefined): boolean {
  const template = group && relationOf(group).templates.find((one) => one.name === name);
  return template !== undefined && fleet !== undefined && isDisabledFor(template, fleet);
}

function selectionOf(group: OwnerRow): string {
  const { clusters, rollout } = relationOf(group);
  return JSON.stringify([clusters, rollout.stages.map((stage) => stage.clusters ?? "others")]);
}

function templatesOf(group: OwnerRow | undefined): ReadonlySet<string> {
  if (group === undefined || group.operations.deletion !== undefined) return new Set();
  return new Set(relationOf(group).templates.map(({ name }) => name));
}

function rolloutTemplates(watch: Watched, number: number | undefined): readonly string[] {
  const rollout = watch.rowsOf<RolloutRow>("Rollout").find((one) => one.number === number);
  return rollout?.plan.templates.map(({ name }) => name) ?? [];
}

function isIn(watch: Watched, number: number | undefined, template: string): boolean {
  return rolloutTemplates(watch, number).includes(template);
}
