/**
 * Where a Go template calls functions by name. Only as much of the language is read as that takes: actions, comments,
 * strings, parentheses and pipes, and names that are fields (`.lookup`) or variables (`$lookup`). What a template puts
 * together as a text and evaluates with `tpl` is no call of the file.
 */
export interface TemplateCall {
  readonly name: string;
  /** Of its first letter. */
  readonly offset: number;
  /** Behind its last argument. */
  readonly end: number;
  /** Counted from 1. */
  readonly line: number;
}

/** What begins a token of an action that is not passed over letter by letter. */
const token = /\}\}|\/\*|["`'|()]|[.$][A-Za-z0-9_.$]*|[A-Za-z_][A-Za-z0-9_]*/g;
const quoted = /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/y;

/**
 * The calls of these functions in a template, in their order. What never ends, a comment or a string, ends the reading,
 * for it is no template. @param text - a letter for each byte.
 */
export function callsIn(text: string, names: ReadonlySet<string>): readonly TemplateCall[] {
  const calls: { name: string; offset: number; end: number; line: number }[] = [];
  /** Whose arguments are being read, and in how many parentheses. */
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

/** Without the blanks before what ends a call, and a `-` that trims. */
function endOfArguments(text: string, end: number): number {
  const before = text.startsWith("}}", end) && text[end - 1] === "-" ? end - 1 : end;
  return text.slice(0, before).trimEnd().length;
}

/** Where a token ends that begins with this word; undefined when it never does. */
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

/** What stands in the place of a function: another name, and what its result is given to. */
export interface Instead {
  readonly name: string;
  readonly into?: string;
}

/** The text with each call replaced; lines stay what they were. */
export function withCalls(text: string, calls: readonly TemplateCall[], instead: ReadonlyMap<string, Instead>): string {
  const changes = calls.flatMap(({ name, offset, end }) => {
    const by = instead.get(name);
    if (by === undefined) return [];
    const renamed = { from: offset, to: offset + name.length, text: by.name };
    return by.into === undefined ? [renamed] : [renamed, { from: end, to: end, text: ` | ${by.into}` }];
  });
  let result = "";
  let from = 0;
  // Those that end at one place: the inner one first, which was called last.
  for (const change of changes.reverse().toSorted((a, b) => a.from - b.from)) {
    result += text.slice(from, change.from) + change.text;
    from = change.to;
  }
  return result + text.slice(from);
}
