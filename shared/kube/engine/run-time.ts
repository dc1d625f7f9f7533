import type { OwnDeadline } from "#shared/kube/engine/own-deadline.ts";

/**
 * What is left of a run. Nothing is begun that, taking as long as the slowest so far, would be cut off; the first pieces
 * always are, so that every run gets further.
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
