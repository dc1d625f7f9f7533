import { expect } from "vitest";
import { isConflict } from "#shared/base/errors.ts";
import { dueAttributes, later } from "#shared/fleet/rows/due.ts";
import { keys, ranges, type Subject } from "#shared/fleet/rows/keys.ts";
import { givesTurns, type SubjectRow } from "#shared/fleet/rows/object-rows.ts";
import { isParkedDeletion, nextWork, type Observed, type Phase, type SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { type Finding, observe } from "#shared/fleet/sync/observe.ts";
import type { Message } from "#shared/messages.ts";
import type { Table, Write } from "#shared/ports.ts";
import { everyRow } from "#test/support/every-row.ts";
import type { PlannerWatch } from "#test/support/planner-model/planner-watch.ts";

/** What a look at a cluster comes to, when the cluster answers. */
export type Outcome = Extract<Phase, "Applying" | "Verifying" | "Ready" | "Retrying" | "Failed">;

const leaseSeconds = 60;
const watchdogSeconds = 30;

/** A worker between its work in the cluster and its write to the table. */
interface Flight {
  readonly cluster: string;
  readonly fence: number;
  readonly looks: readonly { readonly row: SyncRow; readonly observed: Observed }[];
}

interface Look {
  readonly outcome: Outcome;
  readonly fence: number;
  readonly subject: SubjectRow | undefined;
}

interface Lease {
  readonly fence: number;
  readonly until: string;
}

interface World {
  readonly subject: Subject;
  readonly table: Table;
  readonly watch: PlannerWatch;
  readonly now: () => Date;
  readonly send: (messages: readonly Message[]) => void;
}

/**
 * The workers and the clusters they work on: the same verbs, leases, fences and writes as `functions/apply`, with the
 * Kubernetes left out. A worker looks at what is due when a message reaches it, and what it saw is written later, or never.
 */
export class ModelWorkers {
  readonly flights: Flight[] = [];
  readonly away = new Set<string>();
  readonly #world: World;
  readonly #leases = new Map<string, Lease>();
  /** What each cluster was last seen to be at: `<cluster> <sync>` -> the attempt that is under way there. */
  readonly #touched = new Map<string, number>();

  constructor(world: World) {
    this.#world = world;
  }

  /** Works on what is due; what was seen waits as a flight to be landed. */
  async begin(cluster: string, outcome: Outcome): Promise<void> {
    const { table, now } = this.#world;
    const held = this.#leases.get(cluster);
    if (held !== undefined && held.until > now().toISOString()) {
      this.#world.send([{ to: "apply", cluster, delaySeconds: watchdogSeconds }]);
      return;
    }
    const fence = (held?.fence ?? 0) + 1;
    this.#leases.set(cluster, { fence, until: later(now(), leaseSeconds) });
    const rows = await everyRow(table, ranges.syncsOn(cluster));
    const registered = (await table.get(keys.fleet(cluster))) !== undefined;
    const due = rows.filter((row) => this.#isDue(row));
    const { namespace, kind, name } = this.#world.subject;
    const subject = await table.get(keys.object(namespace, kind, name));
    const looks = registered && subject?.operations.suspended === undefined ? due : [];
    this.flights.push({
      cluster,
      fence,
      looks: looks.map((row) => ({ row, observed: this.#look(row, { outcome, fence, subject }) })),
    });
    const { clusters, bound } = this.#world.watch.changing(
      (row) => this.#touched.get(`${row.cluster} ${row.name}`) === row.desired.attempt,
    );
    expect(clusters.size, `${[...clusters].join(", ")} are changing at their API servers`).toBeLessThanOrEqual(bound);
  }

  /** Writes what a worker saw, unless its lease has gone to another one. */
  async land(index: number): Promise<void> {
    const [flight] = this.flights.splice(index % Math.max(1, this.flights.length), 1);
    if (flight === undefined || this.#leases.get(flight.cluster)?.fence !== flight.fence) return;
    for (const { row, observed } of flight.looks) {
      const written = await this.#write(row, observed);
      const key = `${row.cluster} ${row.name}`;
      const goes = observed.phase === "Applying" || observed.phase === "Verifying" || observed.phase === "Retrying";
      if (!goes && this.#touched.get(key) === observed.attempt) this.#touched.delete(key);
      if (written) this.#tell(row, observed);
    }
    this.#leases.set(flight.cluster, { fence: flight.fence, until: "" });
  }

  /** The worker dies before it has written anything. */
  crash(index: number): void {
    this.flights.splice(index % Math.max(1, this.flights.length), 1);
  }

  /** The cluster is not one of ours any more. */
  forget(cluster: string): void {
    for (const key of this.#touched.keys()) if (key.startsWith(`${cluster} `)) this.#touched.delete(key);
  }

  #isDue(row: SyncRow): boolean {
    const at = nextWork(row);
    return at !== undefined && at <= later(this.#world.now(), 0.5);
  }

  #look(row: SyncRow, look: Look): Observed {
    const finding = this.#finding(row, look);
    return observe(row, finding, { now: this.#world.now(), fence: look.fence });
  }

  #finding(row: SyncRow, look: Look): Finding {
    const { outcome } = look;
    const { desired, observed, cluster } = row;
    const say = (phase: Phase): Finding => ({ phase, reason: phase, message: "" });
    if (this.away.has(cluster)) return say("Unreachable");
    const current = observed?.attempt === desired.attempt ? observed : undefined;
    const renderDigest = desired.renderDigest ?? "";
    const holds = current?.applied?.renderDigest === renderDigest;
    if (isParkedDeletion(row) && givesTurns(look.subject)) return say("Reachable");
    if (desired.action === "apply" && current?.phase === "Unreachable" && !holds) return say("Reachable");
    const writes = desired.action === "delete" || current === undefined || !holds;
    if (writes) this.#touched.set(`${cluster} ${row.name}`, desired.attempt);
    if (desired.action === "delete") return say(outcome === "Ready" || outcome === "Verifying" ? "Gone" : outcome);
    const { attempt, revision } = desired;
    const applied = { renderDigest, revision, attempt, at: this.#world.now().toISOString() };
    const whole = outcome === "Ready" || outcome === "Verifying" ? { applied } : {};
    return { ...say(outcome), ...whole };
  }

  /** @returns false when another worker has been there since. */
  async #write(row: SyncRow, observed: Observed): Promise<boolean> {
    let base = row;
    for (;;) {
      const { dueShard: _shard, dueKey: _key, ...kept } = base;
      const next: SyncRow = {
        ...kept,
        observed,
        version: base.version + 1,
        ...(base === row ? { dispatches: 0, stateSk: `${observed.phase}#${row.cluster}#${row.name}` } : {}),
      };
      const at =
        base === row && observed.nextAt !== undefined ? later(observed.nextAt, watchdogSeconds) : nextWork(next);
      const put: Write = {
        put: at === undefined ? next : ({ ...next, ...dueAttributes(next, at) } as SyncRow),
        when: { version: base.version },
      };
      try {
        await this.#world.table.write([put]);
        return true;
      } catch (error) {
        if (!isConflict(error)) throw error;
      }
      const fresh = await this.#world.table.get(row);
      if (fresh === undefined || (fresh.observed?.fence ?? 0) > observed.fence) return false;
      base = fresh;
    }
  }

  #tell(row: SyncRow, observed: Observed): void {
    const { cluster, namespace, name } = row;
    const same = row.observed?.attempt === observed.attempt && row.observed.phase === observed.phase;
    if (!same && observed.phase !== "Applying") {
      this.#world.send([{ to: "report", about: { kind: "Sync", cluster, namespace, name } }]);
    }
    if (observed.nextAt === undefined) return;
    const wait = Math.ceil((Date.parse(observed.nextAt) - this.#world.now().getTime()) / 1000);
    this.#world.send([{ to: "apply", cluster, delaySeconds: Math.max(0, wait) }]);
  }
}
