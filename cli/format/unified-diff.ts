/** The unified diff of two texts, as `diff -u` prints it. */

interface Edit {
  readonly mark: " " | "-" | "+";
  readonly line: string;
}

/** Number of unchanged lines around a change. */
const context = 3;
/** With more differences than this, everything between the first and the last difference is shown as changed. */
const maxEdits = 1500;

/**
 * The hunks, without file names; none for equal texts. The field of a hunk's first line stands after `@@`, where git has the
 * name of the function.
 */
export function unifiedDiff(before: string, after: string): readonly string[] {
  const edits = editsOf(linesOf(before), linesOf(after));
  const changed = edits.flatMap(({ mark }, index) => (mark === " " ? [] : [index]));
  const lines: string[] = [];
  for (let first = 0; first < changed.length; ) {
    let last = first;
    while ((changed[last + 1] ?? Number.POSITIVE_INFINITY) - (changed[last] ?? 0) <= 2 * context) last += 1;
    const from = Math.max(0, (changed[first] ?? 0) - context);
    const hunk = edits.slice(from, (changed[last] ?? 0) + context + 1);
    const [old, now] = [countOf(edits.slice(0, from), "+"), countOf(edits.slice(0, from), "-")];
    lines.push(
      `@@ -${rangeOf(old, countOf(hunk, "+"))} +${rangeOf(now, countOf(hunk, "-"))} @@${fieldAt(edits, changed[first] ?? 0)}`,
      ...hunk.map(({ mark, line }) => `${mark}${line}`),
    );
    first = last + 1;
  }
  return lines;
}

function linesOf(text: string): readonly string[] {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n");
}

/** The number of lines of one side: those without the other side's mark. */
function countOf(edits: readonly Edit[], without: "-" | "+"): number {
  return edits.filter(({ mark }) => mark !== without).length;
}

function rangeOf(before: number, lines: number): string {
  return `${lines === 0 ? before : before + 1},${lines}`;
}

/** ` spec.template`: the YAML keys above a line. */
function fieldAt(edits: readonly Edit[], index: number): string {
  const keys: string[] = [];
  let indent = indentOf(edits[index]?.line ?? "");
  for (const { line } of edits.slice(0, index).reverse()) {
    const [, blanks = "", key] = /^([ -]*)([^\s:]+):/.exec(line) ?? [];
    if (key === undefined || blanks.length >= indent) continue;
    keys.unshift(key);
    indent = blanks.length;
  }
  return keys.length === 0 ? "" : ` ${keys.join(".")}`;
}

function indentOf(line: string): number {
  return /^[ -]*/.exec(line)?.[0].length ?? 0;
}

function editsOf(before: readonly string[], after: readonly string[]): readonly Edit[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let [oldEnd, newEnd] = [before.length, after.length];
  while (oldEnd > start && newEnd > start && before[oldEnd - 1] === after[newEnd - 1]) {
    oldEnd -= 1;
    newEnd -= 1;
  }
  return [
    ...before.slice(0, start).map((line): Edit => ({ mark: " ", line })),
    ...middleOf(before.slice(start, oldEnd), after.slice(start, newEnd)),
    ...before.slice(oldEnd).map((line): Edit => ({ mark: " ", line })),
  ];
}

/** Myers' greedy search (An O(ND) Difference Algorithm, 1986): the fewest edits. */
function middleOf(before: readonly string[], after: readonly string[]): readonly Edit[] {
  const trace: Int32Array[] = [];
  const most = Math.min(before.length + after.length, maxEdits);
  const offset = most + 1;
  let reached = new Int32Array(2 * most + 3);
  for (let edits = 0; edits <= most; edits += 1) {
    trace.push(reached);
    reached = reached.slice();
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      const at = offset + diagonal;
      const isDown = diagonal === -edits || (diagonal !== edits && (reached[at - 1] ?? 0) < (reached[at + 1] ?? 0));
      let x = isDown ? (reached[at + 1] ?? 0) : (reached[at - 1] ?? 0) + 1;
      while (x < before.length && x - diagonal < after.length && before[x] === after[x - diagonal]) x += 1;
      reached[at] = x;
      if (x >= before.length && x - diagonal >= after.length) return wayBack({ before, after, trace, offset });
    }
  }
  return [...before.map((line): Edit => ({ mark: "-", line })), ...after.map((line): Edit => ({ mark: "+", line }))];
}

interface Search {
  readonly before: readonly string[];
  readonly after: readonly string[];
  /** How far each diagonal was reached before each edit. */
  readonly trace: readonly Int32Array[];
  readonly offset: number;
}

function wayBack({ before, after, trace, offset }: Search): readonly Edit[] {
  const edits: Edit[] = [];
  let [x, y] = [before.length, after.length];
  for (let count = trace.length - 1; count >= 0; count -= 1) {
    const reached = trace[count] ?? new Int32Array();
    const diagonal = x - y;
    const at = offset + diagonal;
    const isDown = diagonal === -count || (diagonal !== count && (reached[at - 1] ?? 0) < (reached[at + 1] ?? 0));
    const fromX = count === 0 ? 0 : (reached[isDown ? at + 1 : at - 1] ?? 0);
    const fromY = count === 0 ? 0 : fromX - (isDown ? diagonal + 1 : diagonal - 1);
    for (; x > fromX && y > fromY; x -= 1, y -= 1) edits.push({ mark: " ", line: before[x - 1] ?? "" });
    if (count === 0) break;
    if (isDown) edits.push({ mark: "+", line: after[y - 1] ?? "" });
    else edits.push({ mark: "-", line: before[x - 1] ?? "" });
    [x, y] = [fromX, fromY];
  }
  return edits.reverse();
}
