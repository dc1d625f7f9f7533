/**
 * Finds the calls of functions in a Go template. It understands only the necessary part of the language: actions,
 * comments, strings, parentheses and pipes, and names that are fields (`.lookup`) or variables (`$lookup`). A text that
 * a template composes and evaluates with `tpl` is not covered.
 */
export interface TemplateCall {
  readonly name: string;
  /** The place of its first letter. */
  readonly offset: number;
  /** The place after its last argument. */
  readonly end: number;
  /** Counted from 1. */
  readonly line: number;
}

/** The beginning of a token in an action. Other characters are skipped. */
const token = /\}\}|\/\*|["`'|()]|[.$][A-Za-z0-9_.$]*|[A-Za-z_][A-Za-z0-9_]*/g;
const quoted = /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/y;

/**
 * The calls of these functions in a template, in order. A comment or string that never ends stops the search, because
 * the file is not a valid template. @param text - one character for each byte.
 */
export function callsIn(text: string, names: ReadonlySet<string>): readonly TemplateCall[] {
  const calls: { name: string; offset: number; end: number; line: number }[] = [];
  /** Calls whose arguments are being read, and the depth of their parentheses. */
  let open: { readonly call: { end: number }; readonly depth: number }[] = [];
  let depth = 0;
  let line = 1;
  let counted = 0;
  let isInside = false;
  for (let at = 0; at < text.length; ) {
    if (!isInside) {
      const start = text.indexOf("{{", at);
      if (start < 0) break;
      isInside = true;
      at = start + 2;
    }
    token.lastIndex = at;
    const found = token.exec(text);
    if (found === null) break;
    const [word] = found;
    const end = endOf(text, found.index, word);
    if (end === undefined) break;
    at = end;
    if (word === "(") depth += 1;
    if (word === ")") depth -= 1;
    if (word === "}}" || word === ")" || word === "|") {
      const isEnding = (call: { readonly depth: number }) =>
        word === "}}" || call.depth > depth || (word === "|" && call.depth === depth);
      for (const { call } of open.filter(isEnding)) call.end = endOfArguments(text, found.index);
      open = open.filter((call) => !isEnding(call));
    }
    if (word === "}}") {
      isInside = false;
      depth = 0;
    }
    if (!names.has(word)) continue;
    for (; counted < found.index; counted++) if (text.charCodeAt(counted) === 10) line++;
    const call = { name: word, offset: found.index, end, line };
    calls.push(call);
    open.push({ call, depth });
  }
  return calls;
}

/** Leaves out the blanks before the end of a call, and a `-` that trims. */
function endOfArguments(text: string, end: number): number {
  const before = text.startsWith("}}", end) && text[end - 1] === "-" ? end - 1 : end;
  return text.slice(0, before).trimEnd().length;
}

/** The end of the token that begins with this word; undefined when it never ends. */
function endOf(text: string, start: number, word: string): number | undefined {
  if (word === "/*" || word === "`") {
    const close = word === "`" ? word : "*/";
    const found = text.indexOf(close, start + word.length);
    return found < 0 ? undefined : found + close.length;
  }
  if (word !== '"' && word !== "'") return start + word.length;
  quoted.lastIndex = start;
  return quoted.test(text) ? quoted.lastIndex : undefined;
}

/** The replacement of a function: another name, and the function that its result is piped to. */
export interface Instead {
  readonly name: string;
  readonly into?: string;
}

/** The text with each call replaced. The lines keep their numbers. */
export function withCalls(text: string, calls: readonly TemplateCall[], instead: ReadonlyMap<string, Instead>): string {
  const changes = calls.flatMap(({ name, offset, end }) => {
    const by = instead.get(name);
    if (by === undefined) return [];
    const renamed = { from: offset, to: offset + name.length, text: by.name };
    return by.into === undefined ? [renamed] : [renamed, { from: end, to: end, text: ` | ${by.into}` }];
  });
  let result = "";
  let from = 0;
  // If two calls end at the same place, the inner one comes first; it was found last.
  for (const change of changes.reverse().toSorted((a, b) => a.from - b.from)) {
    result += text.slice(from, change.from) + change.text;
    from = change.to;
  }
  return result + text.slice(from);
}
