/** The interval of checks for due work, for clocks other than the machine's: a test may set its clock at any moment. */
const recheckMs = 20;

/**
 * Runs work when a clock reaches its due time. One timer runs while work waits; it does not keep the process alive. New
 * work replaces later work of the same key.
 */
export class Scheduler {
  readonly #clock: () => number;
  readonly #onError: (error: unknown) => void;
  readonly #waiting = new Map<string, { readonly at: number; readonly work: () => void }>();
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(clock: () => number, onError: (error: unknown) => void) {
    this.#clock = clock;
    this.#onError = onError;
  }

  /** Runs work at a time in milliseconds since the epoch, or as soon as possible after it. */
  at(key: string, atMs: number, work: () => void): void {
    if (this.#closed) return;
    const known = this.#waiting.get(key);
    if (known !== undefined && known.at <= atMs) return;
    this.#waiting.set(key, { at: atMs, work });
    this.#arm();
  }

  cancel(key: string): void {
    this.#waiting.delete(key);
  }

  /** Runs all due work, including work that this work schedules. */
  runDue(): void {
    for (;;) {
      const now = this.#clock();
      const due = [...this.#waiting].filter(([, { at }]) => at <= now).sort(([, a], [, b]) => a.at - b.at);
      const [first] = due;
      if (first === undefined) break;
      const [key, { work }] = first;
      this.#waiting.delete(key);
      try {
        work();
      } catch (error) {
        this.#onError(error);
      }
    }
    this.#arm();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#waiting.clear();
  }

  #arm(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#waiting.size === 0 || this.#closed) return;
    let next = Number.POSITIVE_INFINITY;
    for (const { at } of this.#waiting.values()) next = Math.min(next, at);
    const wait = Math.max(0, next - this.#clock());
    const machineClock = this.#clock === Date.now;
    this.#timer = setTimeout(
      () => this.runDue(),
      machineClock ? Math.min(wait, 2 ** 31 - 1) : Math.min(wait, recheckMs),
    );
    this.#timer.unref();
  }
}
