import { isConflict } from "#shared/base/errors.ts";
import { relationOf } from "#shared/fleet/rollout/plan.ts";
import { dueAttributes, later } from "#shared/fleet/rows/due.ts";
import { keys, ranges, type Subject, stateIndex, syncName } from "#shared/fleet/rows/keys.ts";
import type { LeaseRow } from "#shared/fleet/rows/lease-row.ts";
import { nextWork } from "#shared/fleet/rows/next-work.ts";
import type { SubjectRow } from "#shared/fleet/rows/object-rows.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";
import type { Observed, Phase, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { type Finding, observe } from "#shared/fleet/sync/observe.ts";
import type { Message } from "#shared/messages.ts";
import type { Table, Write } from "#shared/ports.ts";
import { everyRow } from "#test/support/every-row.ts";
import type { ModelServers } from "#test/support/planner-model/model-servers.ts";

/** What a look at a cluster comes to, when the cluster answers. */
export type Outcome = Extract<Phase, "Applying" | "Verifying" | "Ready" | "Retrying" | "Failed">;

const leaseSeconds = 60;
const watchdogSeconds = 30;

/** A worker between its first requests to the cluster and its write to the table. */
interface Flight {
  readonly cluster: string;
  readonly fence: number;
  readonly looks: readonly { readonly row: SyncRow; readonly observed: Observed; readonly wrote: boolean }[];
}

interface Look {
  readonly outcome: Outcome;
  readonly fence: number;
  readonly subject: SubjectRow | undefined;
}

interface World {
  readonly subject: Subject;
  readonly table: Table;
  readonly servers: ModelServers;
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
  /** Whose workers are at something of somebody else, and begin nothing. */
  readonly busy = new Set<string>();
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  /** Works on what is due; what was seen waits as a flight to be landed. */
  async begin(cluster: string, outcome: Outcome): Promise<void> {
    const { table, now } = this.#world;
    const held = await table.get(keys.lease(cluster));
    if (this.busy.has(cluster) || (held?.leaseUntil ?? "") > now().toISOString()) {
      this.#world.send([{ to: "apply", cluster, delaySeconds: watchdogSeconds }]);
      return;
    }
    const lease = await this.#putLease(held, cluster, { owner: "worker", leaseUntil: later(now(), leaseSeconds) });
    const rows = await everyRow(table, ranges.syncsOn(cluster));
    const registered = (await table.get(keys.fleet(cluster))) !== undefined;
    const due = rows.filter((row) => this.#isDue(row));
    const subject = await this.#subject();
    const looks = registered && subject?.operations.suspended === undefined ? due : [];
    const { fence } = lease;
    this.flights.push({
      cluster,
      fence,
      looks: looks.map((row) => {
        const before = this.#world.servers.requests;
        const observed = this.#look(row, { outcome, fence, subject });
        return { row, observed, wrote: this.#world.servers.requests > before };
      }),
    });
  }

  async #subject(): Promise<SubjectRow | undefined> {
    const { namespace, kind, name } = this.#world.subject;
    return this.#world.table.get(keys.object(namespace, kind, name));
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
      wanted: 0,
      fence: (held?.fence ?? 0) + (isTaken ? 1 : 0),
      ...holder,
    };
    const when = held === undefined ? ("absent" as const) : { version: held.version };
    await this.#world.table.write([{ put: lease, when }]);
    return lease;
  }

  /**
   * Writes what a worker saw, unless its lease has gone to another one. Before it, the rest of its requests to the cluster,
   * for which everything is read once more.
   */
  async land(index: number): Promise<void> {
    const [flight] = this.flights.splice(index % Math.max(1, this.flights.length), 1);
    if (flight === undefined) return;
    const lease = await this.#world.table.get(keys.lease(flight.cluster));
    if (lease?.fence !== flight.fence || lease.owner === undefined) return;
    const subject = await this.#subject();
    for (const { row, observed, wrote } of flight.looks) {
      const fresh = await this.#world.table.get(row);
      if (wrote && fresh !== undefined && this.#mayWrite(fresh, row.desired.attempt, subject)) this.#write(fresh);
      const written = await this.#report(row, observed);
      if (written) this.#tell(row, observed);
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

  #look(row: SyncRow, look: Look): Observed {
    const finding = this.#finding(row, look);
    return observe(row, finding, { now: this.#world.now(), fence: look.fence });
  }

  #finding(row: SyncRow, look: Look): Finding {
    const { outcome, subject } = look;
    const { desired, observed, cluster } = row;
    const say = (phase: Phase): Finding => ({ phase, reason: phase, message: "" });
    if (this.away.has(cluster)) return say("Unreachable");
    const current = observed?.attempt === desired.attempt ? observed : undefined;
    const renderDigest = desired.renderDigest ?? "";
    const holds = current?.applied?.renderDigest === renderDigest;
    if (current?.phase === "Unreachable" || current?.phase === "Reachable") if (!holds) return say("Reachable");
    const writes = desired.action === "delete" || current === undefined || !holds;
    if (writes && !this.#mayWrite(row, desired.attempt, subject))
      return say(row.parked === undefined ? "Applying" : "Failed");
    if (writes) this.#write(row);
    if (desired.action === "delete") return say(outcome === "Ready" || outcome === "Verifying" ? "Gone" : outcome);
    const { attempt, revision } = desired;
    const applied = { renderDigest, revision, attempt, at: this.#world.now().toISOString() };
    const whole = outcome === "Ready" || outcome === "Verifying" ? { applied } : {};
    return { ...say(outcome), ...whole };
  }

  /** What the gate of the real worker asks. */
  #mayWrite({ desired, parked, name }: SyncRow, attempt: number, subject: SubjectRow | undefined): boolean {
    if (desired.attempt !== attempt || desired.action === "orphan" || parked !== undefined) return false;
    if (subject?.operations.suspended !== undefined) return false;
    if (desired.action !== "delete" || subject === undefined || subject.operations.deletion !== undefined) return true;
    return !relationOf(subject).templates.some((template) => syncName(this.#world.subject, template.name) === name);
  }

  #write({ cluster, name, desired }: SyncRow): void {
    // Not by their numbers, which begin anew where everything of a Sync was deleted.
    this.#world.servers.written(cluster, `${name} ${desired.token}`);
  }

  /** @returns false when another worker has been there since. */
  async #report(row: SyncRow, observed: Observed): Promise<boolean> {
    let base = row;
    for (;;) {
      const { dueShard: _shard, dueKey: _key, ...kept } = base;
      const next: SyncRow = {
        ...kept,
        observed,
        version: base.version + 1,
        ...(base === row ? { dispatches: 0, stateSk: stateIndex.sk(stateText(row, observed), row) } : {}),
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

/** What was parked is told as failed, until it turns out ready. */
function stateText({ parked }: SyncRow, { phase }: Observed): string {
  return parked === undefined || phase === "Ready" || phase === "Gone" ? phase : "Failed";
}
