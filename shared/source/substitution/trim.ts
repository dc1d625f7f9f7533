export interface Trim {
  /** `*` matches any text, including slashes. */
  readonly glob: string;
  readonly end: "start" | "end";
  readonly match: "shortest" | "longest";
}

/** The text without the part at one end that matches the glob, or the whole text when nothing matches. */
export function trimmed(text: string, { glob, end, match }: Trim): string {
  const parts = glob.split("*");
  if (end === "start") return text.slice(endOfPrefix(text, parts, match) ?? 0);
  return text.slice(0, startOfSuffix(text, parts, match) ?? text.length);
}

/** Each part takes the first place where it fits. This leaves the most space for the last part. */
function endOfPrefix(text: string, [head = "", ...rest]: readonly string[], match: Trim["match"]): number | undefined {
  if (!text.startsWith(head)) return undefined;
  const tail = rest.pop();
  if (tail === undefined) return head.length;
  const at = behindAll(text, rest, head.length);
  if (at === undefined) return undefined;
  const last = match === "longest" ? text.lastIndexOf(tail) : text.indexOf(tail, at);
  return last < at ? undefined : last + tail.length;
}

function startOfSuffix(text: string, parts: readonly string[], match: Trim["match"]): number | undefined {
  const [head = "", ...rest] = parts;
  const tail = rest.pop();
  if (tail === undefined) return text.endsWith(head) ? text.length - head.length : undefined;
  const bound = text.length - tail.length;
  if (!text.endsWith(tail)) return undefined;
  if (match === "longest") {
    const first = text.indexOf(head);
    const at = first < 0 ? undefined : behindAll(text, rest, first + head.length);
    return at === undefined || at > bound ? undefined : first;
  }
  let before = bound;
  for (const part of [head, ...rest].reverse()) {
    const found = before < part.length ? -1 : text.lastIndexOf(part, before - part.length);
    if (found < 0) return undefined;
    before = found;
  }
  return before;
}

/** The end of the last part, when each part follows the one before it. */
function behindAll(text: string, parts: readonly string[], from: number): number | undefined {
  let at = from;
  for (const part of parts) {
    const found = text.indexOf(part, at);
    if (found < 0) return undefined;
    at = found + part.length;
  }
  return at;
}
