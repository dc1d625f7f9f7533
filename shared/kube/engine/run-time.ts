import type { OwnDeadline } from "#shared/kube/engine/own-deadline.ts";

/**
 * The remaining time of a run. An operation does not begin if the slowest operation so far would not fit into the
 * remaining time. The first operations always begin, so that every run makes progress.
 */
export class RunTime {
  readonly #own: OwnDeadline;
  #slowestMs = 0;

  constructor(own: OwnDeadline) {
    this.#own = own;
  }

  isUp(): boolean {
    const { clock, deadline } = this.#own;
    return clock.now().getTime() + this.#slowestMs >= deadline.getTime();
  }

  async measured<T>(work: () => Promise<T>): Promise<T> {
    const { clock } = this.#own;
    const begun = clock.now().getTime();
    try {
      return await work();
    } finally {
      this.#slowestMs = Math.max(this.#slowestMs, clock.now().getTime() - begun);
    }
  }
}
