export interface Trim {
  /** `*` is any text, with slashes too. */
  readonly glob: string;
  readonly end: "start" | "end";
  readonly match: "shortest" | "longest";
}

/** The text without the part at one end of it that the glob matches; the whole text where it matches none. */
export function trimmed(text: string, { glob, end, match }: Trim): string {
  const parts = glob.split("*");
  const lengths = Array.from({ length: text.length + 1 }, (_, length) => length);
  if (match === "longest") lengths.reverse();
  for (const length of lengths) {
    const part = end === "start" ? text.slice(0, length) : text.slice(text.length - length);
    if (isMatch(part, parts)) return end === "start" ? text.slice(length) : text.slice(0, text.length - length);
  }
  return text;
}

/** Whether the text is these parts with any text between each two: no backtracking, each part goes where it fits first. */
function isMatch(text: string, parts: readonly string[]): boolean {
  const [head = "", ...rest] = parts;
  const tail = rest.pop();
  if (tail === undefined) return text === head;
  if (!text.startsWith(head) || !text.endsWith(tail) || text.length < head.length + tail.length) return false;
  let at = head.length;
  for (const part of rest) {
    const found = text.indexOf(part, at);
    if (found < 0 || found + part.length > text.length - tail.length) return false;
    at = found + part.length;
  }
  return true;
}
