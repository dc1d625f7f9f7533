import type { Death, MortalSandboxes } from "#test/support/mortal-sandboxes.ts";

export interface DeathPoint {
  /** The invocation dies at this call, counted from 1. */
  readonly call: number;
  readonly death: Death;
}

export interface DeathPlan {
  /** The planned deaths that no invocation has reached, by function. */
  left(): Readonly<Record<string, readonly DeathPoint[]>>;
}

/** More deaths in a row would count against the work item, whose retries then take longer than a story waits. */
const mostInRow = 2;

/**
 * Kills invocations of these functions, each at another planned point. At most two of three invocations in a row die.
 * An invocation that makes fewer calls survives, and a later one gets its point.
 */
export function planDeaths(mortal: MortalSandboxes, plans: ReadonlyMap<string, readonly DeathPoint[]>): DeathPlan {
  const waiting = new Map([...plans].map(([name, points]) => [name, [...points]]));
  const given = new Map<string, DeathPoint>();
  const key = (of: { readonly functionName: string; readonly invocation: number }) =>
    `${of.functionName} ${of.invocation}`;
  const died = new Set<string>();
  const inRow = new Map<string, number>();
  const rowOf = (functionName: string) => inRow.get(functionName) ?? 0;
  mortal.judgeBy((call) => {
    if (call.number === 1 && rowOf(call.functionName) < mostInRow) {
      const point = waiting.get(call.functionName)?.shift();
      if (point !== undefined) given.set(key(call), point);
    }
    const point = given.get(key(call));
    if (point?.call !== call.number) return undefined;
    given.delete(key(call));
    inRow.set(call.functionName, rowOf(call.functionName) + 1);
    died.add(key(call));
    return point.death;
  });
  mortal.onEnd((end) => {
    if (!died.has(key(end))) inRow.set(end.functionName, 0);
    const unused = given.get(key(end));
    if (unused === undefined) return;
    given.delete(key(end));
    waiting.get(end.functionName)?.push(unused);
  });
  return { left: () => Object.fromEntries([...waiting].filter(([, points]) => points.length > 0)) };
}
