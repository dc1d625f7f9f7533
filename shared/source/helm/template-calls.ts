/**
 * Where a Go template calls functions by name. Only as much of the language is read as that takes: actions, comments,
 * strings, and names that are fields (`.lookup`) or variables (`$lookup`). What a template puts together as a text and
 * evaluates with `tpl` is no call of the file.
 */
export interface TemplateCall {
  readonly name: string;
  /** Of its first letter. */
  readonly offset: number;
  /** Counted from 1. */
  readonly line: number;
}

/** What begins a token of an action that is not passed over letter by letter. */
const token = /\}\}|\/\*|["`']|[.$][A-Za-z0-9_.$]*|[A-Za-z_][A-Za-z0-9_]*/g;
const quoted = /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/y;

/**
 * The calls of these functions in a template, in their order. What never ends, a comment or a string, ends the reading,
 * for it is no template. @param text - a letter for each byte.
 */
export function callsIn(text: string, names: ReadonlySet<string>): readonly TemplateCall[] {
  const calls: TemplateCall[] = [];
  let line = 1;
  let counted = 0;
  let isInside = false;
  for (let at = 0; at < text.length; ) {
    if (!isInside) {
      const open = text.indexOf("{{", at);
      if (open < 0) break;
      isInside = true;
      at = open + 2;
    }
    token.lastIndex = at;
    const found = token.exec(text);
    if (found === null) break;
    const [word] = found;
    const end = endOf(text, found.index, word);
    if (end === undefined) break;
    at = end;
    isInside = word !== "}}";
    if (!names.has(word)) continue;
    for (; counted < found.index; counted++) if (text.charCodeAt(counted) === 10) line++;
    calls.push({ name: word, offset: found.index, line });
  }
  return calls;
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

/** The text with each call's name replaced; lines stay what they were. */
export function withCalls(
  text: string,
  calls: readonly TemplateCall[],
  instead: Readonly<Record<string, string>>,
): string {
  let result = "";
  let from = 0;
  for (const { name, offset } of calls) {
    const replacement = instead[name];
    if (replacement === undefined) continue;
    result += text.slice(from, offset) + replacement;
    from = offset + name.length;
  }
  return result + text.slice(from);
}
