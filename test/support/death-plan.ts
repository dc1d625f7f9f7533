import type { Death, MortalSandboxes } from "#test/support/mortal-sandboxes.ts";

export interface DeathPoint {
  /** The invocation dies at this call of its own, counted from 1. */
  readonly call: number;
  readonly death: Death;
}

export interface DeathPlan {
  /** Points that no invocation has come to, by function. */
  left(): Readonly<Record<string, readonly DeathPoint[]>>;
}

/**
 * Lets each invocation of these functions die at another of the function's points. An invocation that makes fewer calls
 * lives, and its point is given to a later one.
 */
export function planDeaths(mortal: MortalSandboxes, plans: ReadonlyMap<string, readonly DeathPoint[]>): DeathPlan {
  const waiting = new Map([...plans].map(([name, points]) => [name, [...points]]));
  const given = new Map<string, DeathPoint>();
  const key = (of: { readonly functionName: string; readonly invocation: number }) =>
    `${of.functionName} ${of.invocation}`;
  mortal.judgeBy((call) => {
    if (call.number === 1) {
      const point = waiting.get(call.functionName)?.shift();
      if (point !== undefined) given.set(key(call), point);
    }
    const point = given.get(key(call));
    if (point?.call !== call.number) return undefined;
    given.delete(key(call));
    return point.death;
  });
  mortal.onEnd((end) => {
    const unused = given.get(key(end));
    if (unused === undefined) return;
    given.delete(key(end));
    waiting.get(end.functionName)?.push(unused);
  });
  return { left: () => Object.fromEntries([...waiting].filter(([, points]) => points.length > 0)) };
}
