import { type Lease, renewLease } from "#functions/apply/lease/lease.ts";
import type { Clock } from "#shared/base/clock.ts";
import type { Begun } from "#shared/fleet/rows/lease-row.ts";
import { useAfter } from "#shared/fleet/rows/place-use.ts";
import type { Routine } from "#shared/fleet/rows/routine.ts";
import type { Log, Table } from "#shared/ports.ts";

/** A cluster whose worker died waits for so long. */
const leaseSeconds = 45;
/** Renewed when less is left. */
const renewSeconds = 30;
/**
 * With less left nothing is begun in the cluster: clocks that are 3 s off to either side disagree by 6 s, and what was
 * begun has to end.
 */
const quietSeconds = 15;
/** Whether somebody wants it is asked no more often. */
const askSeconds = 1;
/** By the machine's clock, whatever pace ours has. */
const lookEveryMs = 250;

export interface HoldingPorts {
  readonly table: Table;
  readonly clock: Clock;
  readonly log: Log;
}

/** Another worker has the lease, or may have it before what is begun has ended: this one is to do nothing more. */
export class LeaseLost extends Error {
  constructor({ key, fence }: Lease, cause?: unknown) {
    const what = `the lease of ${key.pk} with fence ${fence} was lost, or not renewed in time`;
    super(`${what}; nothing more is written under it`, { cause });
    this.name = "LeaseLost";
  }
}

/** When a lease that is taken or renewed now ends: never long after the invocation that holds it. */
export function leaseEnd(now: Date, invocationEnd: Date): Date {
  return new Date(Math.min(now.getTime() + leaseSeconds * 1000, invocationEnd.getTime() + quietSeconds * 1000));
}

/**
 * A lease that is renewed while its holder works, also while that one waits for a cluster's answer. `stop` ends that, and
 * nothing is begun under it any more; an invocation that was killed renews nothing after its end.
 */
export class HeldLease {
  readonly #ports: HoldingPorts;
  readonly #invocationEnd: Date;
  readonly #timer: NodeJS.Timeout;
  #lease: Lease;
  #renewing: Promise<void> | undefined;
  #isLost = false;
  #isWanted = false;
  /** When that was known. */
  #askedAt: Date;
  /** What is worked at now: told with each renewal. */
  begun: Begun | undefined;
  /** As it is to be when it is let go. */
  routine: Routine;
  /** The cluster takes longer to answer than its worker has. */
  keptWaiting = false;
  /** Since when it is held. */
  readonly #since: Date;

  constructor(lease: Lease, invocationEnd: Date, ports: HoldingPorts) {
    this.#lease = lease;
    this.routine = lease.routine;
    this.#invocationEnd = invocationEnd;
    this.#ports = ports;
    this.#since = ports.clock.now();
    this.#askedAt = this.#since;
    this.#timer = setInterval(() => this.#check(), lookEveryMs);
    this.#timer.unref();
  }

  get lease(): Lease {
    return this.#lease;
  }

  /** As it is to be left now. */
  get left(): Lease {
    const { use, death } = this.#lease;
    // Nobody knows how long a worker had a place that died in it.
    const keptWaiting = this.keptWaiting || death !== undefined;
    const stay = { from: this.#since, to: this.#ports.clock.now(), keptWaiting };
    return { ...this.#lease, use: useAfter(use, stay) };
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#isLost = true;
  }

  /** To be called before anything is begun in the cluster. @throws LeaseLost */
  async ensure(): Promise<void> {
    if (this.#has(quietSeconds)) return;
    await this.#renew("keep").catch((cause: unknown) => {
      throw new LeaseLost(this.#lease, cause);
    });
    if (this.#has(quietSeconds)) return;
    throw new LeaseLost(this.#lease);
  }

  /** Looks for what was wanted meanwhile, and holds on; nothing is begun yet. @returns false when the lease is no longer ours. */
  async again(): Promise<boolean> {
    this.begun = undefined;
    await this.#renew("again");
    return !this.#isLost;
  }

  /** Whether somebody has wanted it since the last look, as far as is known since a second. */
  async isWanted(): Promise<boolean> {
    const { clock, table } = this.#ports;
    const now = clock.now();
    if (this.#isWanted || now.getTime() - this.#askedAt.getTime() < askSeconds * 1000) return this.#isWanted;
    this.#askedAt = now;
    // Who cannot read it finds out when it is renewed or let go.
    const row = await table.get(this.#lease.key).catch(() => undefined);
    this.#isWanted ||= row !== undefined && row.desired > this.#lease.desired;
    return this.#isWanted;
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
    // Told, and no more: whoever wants to write finds out by himself.
    this.#renew("keep").catch((error: unknown) => this.#ports.log.warn("a lease was not renewed", { error }));
  }

  /** One at a time. Who only keeps it does not take note of who wanted it: that is for whoever looks again. */
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
    // It may have been stopped meanwhile.
    this.#isLost ||= renewed === undefined;
    if (renewed === undefined) return;
    this.#isWanted = why === "keep" && renewed.desired !== this.#lease.desired;
    this.#askedAt = this.#ports.clock.now();
    this.#lease = why === "again" ? renewed : { ...renewed, desired: this.#lease.desired };
  }
}
