import { messagesOf, nextRow } from "#functions/apply/worker/check-outcome.ts";
import { defined } from "#shared/base/defined.ts";
import { isConflict } from "#shared/base/errors.ts";
import { due, later } from "#shared/fleet/rows/due.ts";
import { freezeOver, freezeStateAmong } from "#shared/fleet/rows/freezes-row.ts";
import { keys, type Owner, ranges, stateIndex } from "#shared/fleet/rows/keys.ts";
import { believedSeconds, type LeaseRow } from "#shared/fleet/rows/lease-row.ts";
import { nextWork, timerOf } from "#shared/fleet/rows/next-work.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";
import { holdOf, type Phase, type SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { withWorkerHalf } from "#shared/fleet/rows/worker-half.ts";
import { type Finding, observe } from "#shared/fleet/sync/observe.ts";
import { indexedState } from "#shared/fleet/sync/sync-state.ts";
import { type Withheld, withheldFrom } from "#shared/fleet/sync/withheld.ts";
import type { Message } from "#shared/messages.ts";
import type { Table } from "#shared/ports.ts";
import { everyRow } from "#test/support/every-row.ts";
import { ModelObjects, type Prune } from "#test/support/planner-model/model-objects.ts";
import type { ModelServers } from "#test/support/planner-model/model-servers.ts";

/** The result of a check of a cluster that answers. */
export type Outcome = Extract<Phase, "Applying" | "Verifying" | "Ready" | "Retrying" | "Failed">;

const leaseSeconds = 60;
const watchdogSeconds = 30;

/** The worker's part of a row after a check. */
interface Found {
  readonly observed?: SyncRow["observed"] | undefined;
  readonly held?: SyncRow["held"] | undefined;
}

/** A worker between its first requests to the cluster and its write to the table. */
interface Flight {
  readonly cluster: string;
  readonly fence: number;
  /** The worker uses what it has read until this time, and reads again after it. */
  readonly believesUntil: string;
  readonly standing: Standing;
  readonly checks: readonly { readonly row: SyncRow; readonly found: Found; readonly wrote: boolean }[];
}

/** The facts that decide whether the Syncs of a cluster may be written. */
type Standing = Omit<Parameters<typeof withheldFrom>[1], "row"> & { readonly cluster: FleetRow | undefined };

interface Check {
  readonly outcome: Outcome;
  readonly fence: number;
  readonly standing: Standing;
}

interface World {
  readonly owner: Owner;
  readonly table: Table;
  readonly servers: ModelServers;
  readonly now: () => Date;
  readonly send: (messages: readonly Message[]) => void;
  readonly pruned: (prune: Prune) => void;
}

/**
 * The workers and their clusters, with the operations, leases, fences and writes of `functions/apply`, but without
 * Kubernetes. A worker checks due rows when a message reaches it, and writes its observations later, or never.
 */
export class ModelWorkers {
  readonly flights: Flight[] = [];
  readonly away = new Set<string>();
  /** Clusters whose workers are busy with other owners and begin nothing. */
  readonly busy = new Set<string>();
  readonly #world: World;
  readonly #objects: ModelObjects;

  constructor(world: World) {
    this.#world = world;
    this.#objects = new ModelObjects(world.pruned);
  }

  /** Works on due rows. The observations wait as a flight for `land`. */
  async begin(cluster: string, outcome: Outcome): Promise<void> {
    const { table, now } = this.#world;
    const held = await table.get(keys.lease(cluster));
    if (this.busy.has(cluster) || (held?.leaseUntil ?? "") > now().toISOString()) {
      this.#world.send([{ to: "apply", cluster, delaySeconds: watchdogSeconds }]);
      return;
    }
    const lease = await this.#putLease(held, cluster, { owner: "worker", leaseUntil: later(now(), leaseSeconds) });
    const rows = await everyRow(table, ranges.syncsOn(cluster));
    const ripe = rows.filter((row) => this.#isDue(row));
    const standing = await this.#standing(cluster);
    const isChecking = standing.cluster !== undefined && standing.owner?.operations.suspended === undefined;
    const checks = isChecking ? ripe : [];
    const { fence } = lease;
    this.flights.push({
      cluster,
      fence,
      believesUntil: later(now(), believedSeconds),
      standing,
      checks: checks.map((row) => {
        const before = this.#world.servers.requests;
        const found = this.#check(row, { outcome, fence, standing });
        return { row, found, wrote: this.#world.servers.requests > before };
      }),
    });
  }

  async #standing(cluster: string): Promise<Standing> {
    const { owner, table } = this.#world;
    const reading = freezeStateAmong(await table.getMany([keys.freezeState]));
    if (!reading.ok) throw new Error(reading.message);
    return {
      owner: await table.get(keys.object(owner.namespace, owner.kind, owner.name)),
      cluster: await table.get(keys.fleet(cluster)),
      freezeState: reading.freezeState,
    };
  }

  async #putLease(
    held: LeaseRow | undefined,
    cluster: string,
    holder: Pick<LeaseRow, "owner" | "leaseUntil">,
  ): Promise<LeaseRow> {
    const isTaken = holder.owner !== undefined;
    const lease: LeaseRow = {
      ...keys.lease(cluster),
      type: "Lease",
      schema: rowSchema,
      version: (held?.version ?? 0) + 1,
      desired: 0,
      fence: (held?.fence ?? 0) + (isTaken ? 1 : 0),
      ...holder,
    };
    const when = held === undefined ? ("absent" as const) : { version: held.version };
    await this.#world.table.write([{ put: lease, when }]);
    return lease;
  }

  /**
   * Writes what a worker saw, unless its lease has gone to another one. Before it, the rest of its requests to the cluster:
   * for these it believes what it read, and that the lease is its own, for 15 seconds; then it reads everything once more.
   */
  async land(index: number): Promise<void> {
    const [flight] = this.flights.splice(index % Math.max(1, this.flights.length), 1);
    if (flight === undefined) return;
    const isBelieved = this.#world.now().toISOString() < flight.believesUntil;
    if (isBelieved) for (const { row, wrote } of flight.checks) if (wrote) this.#write(row);
    const lease = await this.#world.table.get(keys.lease(flight.cluster));
    if (lease?.fence !== flight.fence || lease.owner === undefined) return;
    const standing = isBelieved ? flight.standing : await this.#standing(flight.cluster);
    for (const { row, found, wrote } of flight.checks) {
      const fresh = isBelieved ? row : await this.#world.table.get(row);
      const why = wrote ? this.#withheld(fresh, { attempt: row.desired.attempt, standing }) : undefined;
      if (wrote && !isBelieved && fresh !== undefined && why === undefined) this.#write(fresh);
      // The freeze came while it was at it.
      const isCut = why?.reason === "Frozen";
      const cut = isCut ? this.#seen(row, { phase: "Applying", reason: "Frozen", message: "" }, flight.fence) : {};
      await this.#report(row, { ...found, ...cut, ...(isCut ? this.#heldBy(row, standing) : {}) });
    }
    await this.#putLease(lease, flight.cluster, {});
  }

  /** The worker dies before it has written anything; its lease runs out. */
  crash(index: number): void {
    this.flights.splice(index % Math.max(1, this.flights.length), 1);
  }

  #isDue(row: SyncRow): boolean {
    const at = nextWork(row);
    return at !== undefined && at <= later(this.#world.now(), 0.5);
  }

  /** A check whose writes are withheld observes nothing of an attempt. */
  #check(row: SyncRow, check: Check): Found {
    const finding = this.#finding(row, check);
    return finding === undefined ? this.#heldBy(row, check.standing) : this.#seen(row, finding, check.fence);
  }

  #seen(row: SyncRow, finding: Finding, fence: number): Found {
    return { observed: observe(row, finding, { now: this.#world.now(), fence }) };
  }

  #heldBy(row: SyncRow, { freezeState, cluster }: Standing): Found {
    const now = this.#world.now();
    const freeze = freezeOver(freezeState, cluster?.labels ?? {}, now);
    if (freeze === undefined) return {};
    const { name, by, reason, until } = freeze;
    const since = holdOf(row)?.since ?? now.toISOString();
    const held = {
      name,
      by,
      reason,
      attempt: row.desired.attempt,
      since,
      at: now.toISOString(),
      ...defined({ until }),
    };
    return { held };
  }

  /** @returns undefined where a freeze keeps it from what it is there for, or took its turn. */
  #finding(row: SyncRow, { outcome, standing }: Check): Finding | undefined {
    const { desired, observed, cluster } = row;
    const say = (phase: Phase): Finding => ({ phase, reason: phase, message: "" });
    const isSilent = this.away.has(cluster);
    const current = observed?.attempt === desired.attempt ? observed : undefined;
    const renderDigest = desired.renderDigest ?? "";
    // Objects of an earlier attempt may have been deleted since.
    const holds = current?.applied?.attempt === desired.attempt;
    const wasAway = current?.phase === "Unreachable" || current?.phase === "Reachable";
    const writes = desired.action === "delete" || current === undefined || !holds;
    const why = writes ? this.#withheld(row, { attempt: desired.attempt, standing }) : undefined;
    if (why?.reason === "Waiting" || (why?.reason === "Frozen" && (!wasAway || holds))) return undefined;
    if (isSilent) return say("Unreachable");
    if (wasAway && current?.readyAt === undefined) return say("Reachable");
    if (why !== undefined) return say(why.reason === "Paused" ? "Failed" : "Applying");
    if (writes) this.#write(row);
    const isWhole = outcome === "Ready" || outcome === "Verifying";
    const life = `${cluster} ${standing.cluster?.uid}`;
    if (desired.action === "delete" && isWhole) this.#objects.delete(life, row);
    if (desired.action === "delete") return say(isWhole ? "Gone" : outcome);
    if (!isWhole) return say(outcome);
    const guardedPrune = writes ? this.#objects.apply(life, row) : undefined;
    if (guardedPrune !== undefined) return { ...say("Failed"), guardedPrune };
    const { attempt, revision } = desired;
    return { ...say(outcome), applied: { renderDigest, revision, attempt, at: this.#world.now().toISOString() } };
  }

  #withheld(
    row: SyncRow | undefined,
    { attempt, standing }: { readonly attempt: number; readonly standing: Standing },
  ): Withheld | undefined {
    return withheldFrom(attempt, { ...standing, row }, this.#world.now());
  }

  #write({ cluster, name, desired }: SyncRow): void {
    // Not by their numbers, which begin anew where everything of a Sync was deleted.
    this.#world.servers.written(cluster, `${name} ${desired.token}`, desired.renderDigest);
  }

  /** Unless another worker has been there since. */
  async #report(row: SyncRow, { observed, held }: Found): Promise<void> {
    const { table, now, send } = this.#world;
    const outcome = { row, ...defined({ observed, held }) };
    try {
      await table.write([{ put: nextRow(outcome), when: { version: row.version } }]);
    } catch (error) {
      if (!isConflict(error)) throw error;
      if (observed === undefined || !(await this.#reportOver(row, { observed, held }))) return;
    }
    send(messagesOf(outcome, now()));
  }

  /** The planner wrote the row meanwhile. @returns false when there is nobody to tell any more. */
  async #reportOver(row: SyncRow, { observed, held }: Found): Promise<boolean> {
    const fresh = await this.#world.table.get(row);
    if (fresh === undefined || (fresh.observed?.fence ?? 0) > (observed?.fence ?? 0)) return false;
    const both = withWorkerHalf(fresh, { observed, held, deaths: fresh.deaths });
    const next = { ...both, version: fresh.version + 1, stateSk: stateIndex.sk(indexedState(both), fresh) };
    try {
      await this.#world.table.write([
        { put: due(next, timerOf(next), fresh.dispatches), when: { version: fresh.version } },
      ]);
      return true;
    } catch (error) {
      if (!isConflict(error)) throw error;
      return this.#reportOver(row, { observed, held });
    }
  }
}
