/** `1 cluster`, `2 clusters`. */
export function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

/** `a, b and 3 more`. @param count - the total number, if `names` are only the first ones. */
export function firstOf(names: readonly string[], { most, count = names.length }: First): string {
  const shown = names.slice(0, most);
  const left = count - shown.length;
  return left > 0 ? `${shown.join(", ")} and ${left} more` : shown.join(", ");
}

interface First {
  readonly most: number;
  readonly count?: number;
}
