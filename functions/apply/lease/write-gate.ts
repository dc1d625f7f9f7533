import type { HeldLease } from "#functions/apply/lease/held-lease.ts";
import type { Clock } from "#shared/base/clock.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { freezeStateAmong } from "#shared/fleet/rows/freezes-row.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { believedSeconds } from "#shared/fleet/rows/lease-row.ts";
import type { OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import type { Row } from "#shared/fleet/rows/row.ts";
import { rowAt } from "#shared/fleet/rows/suspension.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { type Standing, type Withheld, withheldFrom } from "#shared/fleet/sync/withheld.ts";
import type { Table } from "#shared/ports.ts";

/** Milliseconds for which the rows that began a run also count for its first turn. */
const justReadSeconds = 5;

/** Thrown when an operation wants to write to a cluster although it may not. */
export class WriteWithheld extends Error {
  readonly why: Withheld;

  constructor(why: Withheld) {
    super(why.message);
    this.name = "WriteWithheld";
    this.why = why;
  }
}

/** The rows that were read, and when the read began. */
export interface Reading {
  readonly standing: Standing;
  readonly at: Date;
}

export interface GatePorts {
  readonly table: Table;
  readonly clock: Clock;
}

/** Decides about everything that one operation on a Sync may write to its cluster. */
export class WriteGate {
  readonly #row: SyncRow;
  readonly #lease: HeldLease;
  readonly #ports: GatePorts;
  /** The rows that were read last. */
  #known: Reading | undefined;
  #reading: Promise<Standing> | undefined;

  constructor(row: SyncRow, lease: HeldLease, ports: GatePorts) {
    this.#row = row;
    this.#lease = lease;
    this.#ports = ports;
  }

  /**
   * Reads the Sync, its owner, its cluster and the freezes in one batch.
   * @throws StarlingError when they cannot be read: then nothing may be written.
   */
  read(): Promise<Standing> {
    // Many simultaneous writes share one read.
    this.#reading ??= this.#readAnew().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  /**
   * The rows for a turn that writes at once: a new read, or the rows that chose the turn when they were read under the
   * lease and just before.
   * @throws StarlingError as `read` does.
   */
  async begin(read: Reading | undefined): Promise<Standing> {
    const ageMs = read === undefined ? Number.POSITIVE_INFINITY : this.#ports.clock.now().getTime() - read.at.getTime();
    if (read === undefined || ageMs >= justReadSeconds * 1000) return this.read();
    this.#known = read;
    return read.standing;
  }

  async #readAnew(): Promise<Standing> {
    this.#known = undefined;
    const { cluster, namespace, name, owner } = this.#row;
    const now = this.#ports.clock.now();
    const desired = [
      keys.sync(cluster, namespace, name),
      keys.object(owner.namespace, owner.kind, owner.name),
      keys.cluster(cluster),
      keys.freezeState,
    ];
    const rows = await this.#ports.table.getMany(desired);
    const reading = freezeStateAmong(rows);
    if (!reading.ok) throw new StarlingError(reading.message, { code: "FreezesUnreadable", retry: "transient" });
    const owned = rows.find(isOwner);
    const standing = {
      row: rows.find((row) => row.type === "SyncOnCluster"),
      owner: owned && rowAt(owned, now),
      cluster: rows.find((row) => row.type === "Cluster"),
      freezeState: reading.freezeState,
    };
    this.#known = { standing, at: now };
    return standing;
  }

  /**
   * Called at each change of phase within an operation: from applying to pruning, from comparing to correcting.
   * @param attempt - the attempt that the operation works on.
   */
  async ask(attempt: number): Promise<Withheld | undefined> {
    try {
      return withheldFrom(attempt, await this.read(), this.#ports.clock.now());
    } catch (error) {
      if (!(error instanceof StarlingError)) throw error;
      return { reason: "Unreadable", message: error.message };
    }
  }

  /**
   * Called for each single write, each time that it is sent: the lease must hold, and the rows must be recent.
   * @throws WriteWithheld, LeaseLost
   */
  async permit(attempt: number): Promise<void> {
    await this.#lease.ensure();
    const now = this.#ports.clock.now();
    const known = this.#known;
    const isFresh = known !== undefined && now.getTime() - known.at.getTime() < believedSeconds * 1000;
    const withheld = isFresh ? withheldFrom(attempt, known.standing, now) : await this.ask(attempt);
    if (withheld !== undefined) throw new WriteWithheld(withheld);
    // The read may have taken long.
    if (!isFresh) await this.#lease.ensure();
  }
}

function isOwner(row: Row): row is OwnerRow {
  return row.type === "SyncGroup" || row.type === "Sync";
}
