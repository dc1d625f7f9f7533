export type ValuePath = readonly (string | number)[];

interface Place {
  readonly value: unknown;
  readonly step: string | number;
  readonly depth: number;
  readonly parent?: Place;
}

/**
 * The path of the first member, at any depth, for which the test holds. The test gets the member's step and its depth
 * from 1. It does not recurse, because user values may be nested deeper than the stack allows.
 */
export function findPath(
  value: unknown,
  test: (place: { readonly step: string | number; readonly depth: number }) => boolean,
): ValuePath | undefined {
  const waiting: Place[] = [{ value, step: "", depth: 0 }];
  for (let place = waiting.pop(); place !== undefined; place = waiting.pop()) {
    if (place.depth > 0 && test(place)) return pathTo(place);
    if (typeof place.value !== "object" || place.value === null) continue;
    const parent = place;
    const depth = place.depth + 1;
    const members = Array.isArray(place.value) ? [...place.value.entries()] : Object.entries(place.value);
    for (const [step, member] of members.reverse()) waiting.push({ value: member, step, depth, parent });
  }
  return undefined;
}

function pathTo(place: Place): ValuePath {
  const path: (string | number)[] = [];
  for (let at: Place | undefined = place; at?.parent !== undefined; at = at.parent) path.push(at.step);
  return path.reverse();
}
