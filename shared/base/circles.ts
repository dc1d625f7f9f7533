/**
 * Finds the cycles of a graph: maps each node to one node that represents its cycle. A node outside of any cycle
 * represents itself. The time is linear in nodes and edges, because the graph may come from a stranger.
 */
export function circlesAmong<T>(nodes: readonly T[], nextOf: (node: T) => readonly T[]): ReadonlyMap<T, T> {
  const previous = new Map<T, T[]>();
  for (const node of nodes) {
    for (const to of nextOf(node)) {
      const known = previous.get(to);
      if (known) known.push(node);
      else previous.set(to, [node]);
    }
  }
  const circleOf = new Map<T, T>();
  for (const first of inOrderOfEnd(nodes, nextOf).toReversed()) {
    if (circleOf.has(first)) continue;
    circleOf.set(first, first);
    const circle = [first];
    for (const node of circle) {
      for (const before of previous.get(node) ?? []) {
        if (circleOf.has(before)) continue;
        circleOf.set(before, first);
        circle.push(before);
      }
    }
  }
  return circleOf;
}

/**
 * The nodes in the order in which a depth-first search leaves them. It does not recurse, because a chain may be longer
 * than the stack.
 */
function inOrderOfEnd<T>(nodes: readonly T[], nextOf: (node: T) => readonly T[]): readonly T[] {
  const seen = new Set<T>();
  const ended: T[] = [];
  const path: { readonly node: T; readonly next: Iterator<T> }[] = [];
  const enter = (node: T) => {
    if (seen.has(node)) return;
    seen.add(node);
    path.push({ node, next: nextOf(node).values() });
  };
  for (const root of nodes) {
    enter(root);
    for (let last = path.at(-1); last !== undefined; last = path.at(-1)) {
      const { done, value } = last.next.next();
      if (done !== true) {
        enter(value);
        continue;
      }
      path.pop();
      ended.push(last.node);
    }
  }
  return ended;
}
