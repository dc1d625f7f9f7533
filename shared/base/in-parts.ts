/** Splits the items into parts of this size, in order. The last part may be smaller, and no part is empty. */
export function inParts<T>(items: readonly T[], size: number): readonly (readonly T[])[] {
  const count = Math.ceil(items.length / size);
  return Array.from({ length: count }, (_, part) => items.slice(part * size, (part + 1) * size));
}
