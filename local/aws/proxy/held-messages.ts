export interface HeldMessage {
  /** Messages of one group are sent in their order. */
  readonly group: string | undefined;
  readonly holdMs: number;
  readonly send: () => Promise<unknown>;
}

export interface HeldMessages {
  hold(message: HeldMessage): void;
  /** Whether a message of the group is held. Later messages of the group must then be held, too. */
  holds(group: string): boolean;
  /** Whether a message of any group is held. */
  holdsAny(): boolean;
  /** Drops all held messages. */
  stop(): void;
}

/**
 * Holds accepted messages and sends each to the emulator after a delay. A message that the emulator then refuses is
 * lost.
 */
export function createHeldMessages(): HeldMessages {
  const groups = new Map<string, HeldMessage[]>();
  const timers = new Set<NodeJS.Timeout>();

  function after(delayMs: number, run: () => Promise<unknown>): void {
    const timer = setTimeout(() => {
      timers.delete(timer);
      run().catch(() => {});
    }, delayMs);
    timers.add(timer);
  }

  async function advance(group: string): Promise<void> {
    const waiting = groups.get(group) ?? [];
    await waiting[0]?.send().catch(() => {});
    waiting.shift();
    const next = waiting[0];
    if (next === undefined) groups.delete(group);
    else after(next.holdMs, () => advance(group));
  }

  return {
    hold(message) {
      const { group, holdMs, send } = message;
      if (group === undefined) return after(holdMs, send);
      const waiting = groups.get(group);
      if (waiting !== undefined) {
        waiting.push(message);
        return;
      }
      groups.set(group, [message]);
      after(holdMs, () => advance(group));
    },
    holds: (group) => groups.has(group),
    holdsAny: () => groups.size > 0,
    stop() {
      for (const timer of timers) clearTimeout(timer);
    },
  };
}
