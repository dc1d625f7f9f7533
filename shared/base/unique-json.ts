/**
 * Parses JSON in which no object has a member twice: readers disagree about which of the two counts, so a signature over
 * such a text says nothing.
 * @throws SyntaxError
 */
export function parseUniqueJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  // In a valid text each member begins with a string and a colon, and nothing else does.
  const written = [...text.matchAll(/"(?:[^"\\]|\\.)*"\s*(:?)/g)].filter(([, colon]) => colon !== "").length;
  if (written !== membersOf(value)) throw new SyntaxError("an object has a member twice");
  return value;
}

function membersOf(value: unknown): number {
  let members = 0;
  const left: unknown[] = [value];
  while (left.length > 0) {
    const next = left.pop();
    if (typeof next !== "object" || next === null) continue;
    const values = Object.values(next);
    if (!Array.isArray(next)) members += values.length;
    for (const each of values) left.push(each);
  }
  return members;
}
