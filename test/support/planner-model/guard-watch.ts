import { expect } from "vitest";
import type { GuardSpec } from "#shared/fleet/kinds/guard-spec.ts";
import { resolveCount } from "#shared/fleet/kinds/quantities.ts";
import { guardSpecOf } from "#shared/fleet/rollout/guard.ts";
import { keys, type Owner, syncName } from "#shared/fleet/rows/keys.ts";
import type { FleetRow, OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import type { RolloutRow, RolloutStateRow, WithheldChange } from "#shared/fleet/rows/rollout-rows.ts";
import { keyText, type Row } from "#shared/fleet/rows/row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Prune } from "#test/support/planner-model/model-objects.ts";
import type { Change } from "#test/support/planner-model/stage-watch.ts";

/** A percentage of fewer objects is no bound. */
const fewestForShare = 5;

/** Longer than any scenario lasts: nothing leaves a window of this length, and no former guard ends. */
export const longWindow = "240h";

const namesShown = 20;

interface Watched {
  readonly owner: Owner;
  rowsOf<R extends Row>(type: R["type"]): R[];
}

interface Assigning {
  /** The guard of the spec during the whole call of the planner. */
  readonly guard: GuardSpec | undefined;
  /** A deletion is taken back: the cluster gets what it had. */
  readonly isTakenBack: boolean;
}

/**
 * Counts the clusters that a group with a guard is given and that it loses, by the assignments of their Syncs. Those that
 * people approved by name are left out, and so are those that had been there before the guard.
 */
export class GuardWatch {
  /** The guards of the spec so far. Each stays in force for a window's length after it is replaced. */
  readonly #specs: GuardSpec[] = [];
  /** The guards that were there when a cluster joined, or left the selection. */
  readonly #joined = new Map<string, readonly GuardSpec[]>();
  readonly #left = new Map<string, readonly GuardSpec[]>();
  readonly #approved = {
    additions: new Set<string>(),
    deletions: new Set<string>(),
    templates: new Set<string>(),
    objects: new Set<string>(),
  };
  /** Clusters that ever had a Sync of the group. */
  readonly #known = new Set<string>();
  readonly #added = new Set<string>();
  readonly #removed = new Set<string>();
  /** Templates that were planned when the spec dropped them under a guard that lets nothing be deleted. */
  readonly #kept = new Set<string>();
  /** The hashes of prunes that people approved. */
  readonly #approvedPrunes = new Set<string>();
  /** The bound of objects of each assignment under a guard, by Sync and token. */
  readonly #bounds = new Map<string, GuardSpec["objects"]>();
  #base = 0;
  /** A group of nobody has no share of anything. */
  #isFree = false;
  #isRolledOut = false;

  /** A change with many names shows only some of them. */
  approved({ kind, names, hash }: WithheldChange): void {
    if (kind === "objects") this.#approvedPrunes.add(hash);
    for (const name of names) this.#approved[kind].add(name);
    if (names.length < namesShown) return;
    if (kind === "templates") this.#kept.clear();
    else for (const name of this.#joined.keys()) this.#approved[kind].add(name);
  }

  written(changes: readonly Change[], watched: Watched): void {
    for (const { before, after } of changes) {
      const row = after ?? before;
      if (row?.type === "RolloutState" && after !== undefined) this.#noteBase(after as RolloutStateRow);
      if (after?.type === "SyncGroup") this.#noteGuard(before as OwnerRow | undefined, after as OwnerRow, watched);
      if (row?.type === "Fleet") this.#noteCluster(before as FleetRow | undefined, after as FleetRow | undefined);
    }
  }

  /** No cluster loses more objects of an assignment than the guard of the spec lets it, unless people approved these. */
  pruned({ row, count, members, hash }: Prune): void {
    const bound = this.#bounds.get(`${keyText(row)} ${row.desired.token}`);
    if (bound === undefined || this.#approvedPrunes.has(hash)) return;
    if (typeof bound === "string" && members < fewestForShare) return;
    const what = `${row.name} on ${row.cluster}, rollout ${row.desired.rollout}: objects of ${members} that were pruned`;
    expect(count, what).toBeLessThanOrEqual(resolveCount(bound, members));
  }

  #noteBase({ stages, last, members }: RolloutStateRow): void {
    const count = stages.reduce((sum, stage) => sum + stage.members, 0);
    if (this.#specs.length > 0 && this.#isRolledOut && count === 0) this.#isFree = true;
    this.#base = Math.max(this.#base, count);
    this.#isRolledOut ||= last > 0 && members !== undefined;
  }

  #noteGuard(before: OwnerRow | undefined, group: OwnerRow, { owner, rowsOf }: Watched): void {
    const guard = guardSpecOf(group);
    if (guard !== undefined) {
      const isNew = JSON.stringify(guard) !== JSON.stringify(this.#specs.at(-1));
      if (isNew) this.#specs.push(guard);
    }
    if (before === undefined || !("templates" in group.spec) || !("templates" in before.spec)) return;
    const now = new Set(group.spec.templates.map(({ name }) => name));
    const [newest] = rowsOf<RolloutRow>("Rollout").sort((a, b) => b.number - a.number);
    const planned = new Set(newest?.plan.templates.map(({ name }) => name));
    for (const name of now) this.#kept.delete(syncName(owner, name));
    for (const { name } of before.spec.templates)
      if (!now.has(name) && planned.has(name) && this.#specs.some(({ deletions }) => deletions === 0))
        this.#kept.add(syncName(owner, name));
  }

  #noteCluster(before: FleetRow | undefined, after: FleetRow | undefined): void {
    const name = after?.name ?? before?.name ?? "";
    if (after === undefined || (before !== undefined && before.uid !== after.uid)) {
      // Nobody withholds that a cluster is unregistered, and a name that had Syncs is none that joins.
      this.#left.set(name, []);
      return;
    }
    const [was, is] = [before?.labels.fleet === "web", after.labels.fleet === "web"];
    if (!was && is && !this.#joined.has(name)) this.#joined.set(name, this.#isRolledOut ? [...this.#specs] : []);
    if (was && !is) this.#left.set(name, [...this.#specs]);
    if (is) this.#left.delete(name);
  }

  /** @param what - names the assignment. */
  assigned(what: string, sync: SyncRow, { guard, isTakenBack, rowsOf }: Watched & Assigning): void {
    const { cluster, name, desired } = sync;
    const isKnown = this.#known.has(cluster);
    this.#known.add(cluster);
    if (desired.action === "apply" && !isKnown && !this.#approved.additions.has(cluster)) {
      const specs = this.#joined.get(cluster) ?? [];
      if (specs.length > 0) this.#added.add(cluster);
      for (const { additions } of this.#isFree ? [] : specs)
        expect(this.#added.size, `${what}: clusters that were added`).toBeLessThanOrEqual(
          resolveCount(additions, this.#base),
        );
    }
    if (desired.action === "orphan") {
      const isRegistered = rowsOf<FleetRow>("Fleet").some((row) => keyText(row) === keyText(keys.fleet(cluster)));
      const specs = isRegistered ? (this.#left.get(cluster) ?? []) : [];
      if (specs.length === 0 || this.#approved.deletions.has(cluster)) return;
      this.#removed.add(cluster);
      for (const { deletions } of this.#isFree ? [] : specs)
        expect(this.#removed.size, `${what}: clusters that have left`).toBeLessThanOrEqual(
          resolveCount(deletions, this.#base),
        );
    }
    // A rollback takes back what the bad rollout added.
    const rollout = rowsOf<RolloutRow>("Rollout").find(({ number }) => number === desired.rollout);
    if (rollout?.trigger === "rollback") return;
    if (guard !== undefined && desired.action === "apply" && !isTakenBack)
      this.#bounds.set(`${keyText(sync)} ${desired.token}`, guard.objects);
    expect([...this.#approvedPrunes], `${what}: what it may prune was approved`).toEqual(
      expect.arrayContaining([...(desired.mayPrune ?? [])]),
    );
    if (desired.action === "delete" && !this.#approved.templates.has(name.slice(name.indexOf(".") + 1)))
      expect(this.#kept.has(name) && !this.#isFree, `${what}: its template is kept by a guard`).toBe(false);
  }
}
