import { type Lease, renewLease } from "#functions/apply/lease/lease.ts";
import type { Clock } from "#shared/base/clock.ts";
import type { Begun } from "#shared/fleet/rows/lease-row.ts";
import { useAfter } from "#shared/fleet/rows/place-use.ts";
import type { Routine } from "#shared/fleet/rows/routine.ts";
import type { Log, Table } from "#shared/ports.ts";

/** Seconds of a lease: a cluster whose worker died waits that long. */
const leaseSeconds = 45;
/** The lease is renewed when less time is left. */
const renewSeconds = 30;
/**
 * With less time left, the worker begins nothing more in the cluster. Two clocks that are 3 s off to either side differ
 * by 6 s, and a request that has begun must end within the lease.
 */
const quietSeconds = 15;
/** Milliseconds between two checks for other workers that want the lease. */
const askSeconds = 1;
/** A timer of the machine's clock, independent of the pace of `Clock`. */
const checkEveryMs = 250;

export interface HoldingPorts {
  readonly table: Table;
  readonly clock: Clock;
  readonly log: Log;
}

/** Another worker has the lease, or may have it before the present request ends: this worker must stop. */
export class LeaseLost extends Error {
  constructor({ key, fence }: Lease, cause?: unknown) {
    const what = `the lease of ${key.pk} with fence ${fence} was lost, or not renewed in time`;
    super(`${what}; nothing more is written under it`, { cause });
    this.name = "LeaseLost";
  }
}

/** End of a lease that is taken or renewed now; never long after the end of the invocation that holds it. */
export function leaseEnd(now: Date, invocationEnd: Date): Date {
  return new Date(Math.min(now.getTime() + leaseSeconds * 1000, invocationEnd.getTime() + quietSeconds * 1000));
}

/**
 * A lease that is renewed while its holder works, also while the holder waits for a cluster's answer. After `stop`
 * nothing begins under the lease any more. An invocation that was killed renews nothing after its end.
 */
export class HeldLease {
  readonly #ports: HoldingPorts;
  readonly #invocationEnd: Date;
  readonly #timer: NodeJS.Timeout;
  #lease: Lease;
  #renewing: Promise<void> | undefined;
  #isLost = false;
  #isRequested = false;
  /** When the holder last learned that. */
  #askedAt: Date;
  /** The Sync in work now; each renewal reports it. */
  begun: Begun | undefined;
  /** The lease row as it will be when the lease is released. */
  routine: Routine;
  /** True when the cluster answers more slowly than the worker's time allows. */
  keptWaiting = false;
  /** Since when the worker holds the lease. */
  readonly #since: Date;

  constructor(lease: Lease, invocationEnd: Date, ports: HoldingPorts) {
    this.#lease = lease;
    this.routine = lease.routine;
    this.#invocationEnd = invocationEnd;
    this.#ports = ports;
    this.#since = ports.clock.now();
    this.#askedAt = this.#since;
    this.#timer = setInterval(() => this.#check(), checkEveryMs);
    this.#timer.unref();
  }

  get lease(): Lease {
    return this.#lease;
  }

  /** The lease row as it would be released now. */
  get left(): Lease {
    const { use, death } = this.#lease;
    // The duration of a worker that died is unknown.
    const keptWaiting = this.keptWaiting || death !== undefined;
    const stay = { from: this.#since, to: this.#ports.clock.now(), keptWaiting };
    return { ...this.#lease, use: useAfter(use, stay) };
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#isLost = true;
  }

  /** Called before every step in the cluster. @throws LeaseLost */
  async ensure(): Promise<void> {
    if (this.#has(quietSeconds)) return;
    await this.#renew("keep").catch((cause: unknown) => {
      throw new LeaseLost(this.#lease, cause);
    });
    if (this.#has(quietSeconds)) return;
    throw new LeaseLost(this.#lease);
  }

  /**
   * Reads whether another worker wanted the lease meanwhile, and keeps the lease; nothing begins yet. @returns false
   * when the lease is lost.
   */
  async again(): Promise<boolean> {
    this.begun = undefined;
    await this.#renew("again");
    return !this.#isLost;
  }

  /** Whether another worker has wanted the lease since the last check; the answer is at most a second old. */
  async isRequested(): Promise<boolean> {
    const { clock, table } = this.#ports;
    const now = clock.now();
    if (this.#isRequested || now.getTime() - this.#askedAt.getTime() < askSeconds * 1000) return this.#isRequested;
    this.#askedAt = now;
    // A worker that cannot read the lease notices that when it renews or releases the lease.
    const row = await table.get(this.#lease.key).catch(() => undefined);
    this.#isRequested ||= row !== undefined && row.desired > this.#lease.desired;
    return this.#isRequested;
  }

  #has(seconds: number): boolean {
    const left = this.#lease.until.getTime() - this.#ports.clock.now().getTime();
    return !this.#isLost && left > seconds * 1000;
  }

  #check(): void {
    if (this.#isLost || this.#ports.clock.now() >= this.#invocationEnd) {
      clearInterval(this.#timer);
      return;
    }
    if (this.#has(renewSeconds) || this.#renewing !== undefined) return;
    // The loss is only recorded: the next write of the holder fails by itself.
    this.#renew("keep").catch((error: unknown) => this.#ports.log.warn("a lease was not renewed", { error }));
  }

  /**
   * Renewals run one at a time. A renewal that only keeps the lease ignores workers that want it; the next check reads
   * them.
   */
  #renew(why: "keep" | "again"): Promise<void> {
    const earlier = this.#renewing ?? Promise.resolve();
    const renewing = earlier
      .catch(() => {})
      .then(() => this.#write(why))
      .finally(() => {
        if (this.#renewing === renewing) this.#renewing = undefined;
      });
    this.#renewing = renewing;
    return renewing;
  }

  async #write(why: "keep" | "again"): Promise<void> {
    if (this.#isLost) return;
    const until = leaseEnd(this.#ports.clock.now(), this.#invocationEnd);
    if (why === "keep" && until <= this.#lease.until) return;
    const renewed = await renewLease(this.#lease, { until, begun: this.begun }, this.#ports.table);
    // The lease may have been stopped meanwhile.
    this.#isLost ||= renewed === undefined;
    if (renewed === undefined) return;
    this.#isRequested = why === "keep" && renewed.desired !== this.#lease.desired;
    this.#askedAt = this.#ports.clock.now();
    this.#lease = why === "again" ? renewed : { ...renewed, desired: this.#lease.desired };
  }
}
