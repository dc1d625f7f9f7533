import type { Death, MortalSandboxes } from "#test/support/mortal-sandboxes.ts";

export interface DeathPoint {
  /** The invocation dies at this call of its own, counted from 1. */
  readonly call: number;
  readonly death: Death;
}

export interface DeathPlan {
  /** Points that no invocation has come to yet. */
  left(): readonly DeathPoint[];
}

/**
 * Lets each invocation of a function die at another of the points. An invocation that makes fewer calls lives, and its
 * point is given to a later one.
 */
export function planDeaths(mortal: MortalSandboxes, functionName: string, points: readonly DeathPoint[]): DeathPlan {
  const waiting = [...points];
  const given = new Map<number, DeathPoint>();
  mortal.judgeBy((call) => {
    if (call.functionName !== functionName) return undefined;
    if (call.number === 1) {
      const point = waiting.shift();
      if (point !== undefined) given.set(call.invocation, point);
    }
    const point = given.get(call.invocation);
    if (point?.call !== call.number) return undefined;
    given.delete(call.invocation);
    return point.death;
  });
  mortal.onEnd((end) => {
    const unused = end.functionName === functionName ? given.get(end.invocation) : undefined;
    if (unused === undefined) return;
    given.delete(end.invocation);
    waiting.push(unused);
  });
  return { left: () => [...waiting, ...given.values()] };
}
