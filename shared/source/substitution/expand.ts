/**
 * Expands `${NAME}` in a text, with Flux's functions (drone/envsubst in fluxcd/pkg, strict mode). Comments mark the
 * differences: characters are counted instead of bytes, and expressions that mean something else in a shell are
 * refused.
 */
import { ownValue } from "#shared/base/own-value.ts";
import { trimmed } from "#shared/source/substitution/trim.ts";

export type Variables = Readonly<Record<string, string>>;

/**
 * `flux` counts bytes, reads `:?` and `:+` as defaults, and returns the whole value for a part that is not a number, as
 * Flux does.
 */
export type Dialect = "starling" | "flux";

/**
 * A text that cannot be expanded. The message never contains the text around the expression, because it can be a
 * secret.
 */
export class SubstitutionError extends Error {
  constructor(reason: string) {
    super(reason);
    this.name = "SubstitutionError";
  }
}

/**
 * The reader's position, and the variables. A default that is not needed is only parsed: its variables may be unset.
 */
interface Reader {
  readonly text: string;
  at: number;
  readonly variables: Variables;
  readonly dialect: Dialect;
  isUnused: boolean;
  depth: number;
}

/** Defaults inside defaults. Deeper ones are a mistake, or an attempt to fill the stack. */
const maxDepth = 20;
/** The limit of a text and of each part of it, in characters. An API server accepts no object of this size. */
const maxLength = 2 * 1024 * 1024;

/**
 * The text with every `${...}` replaced once; the result is not expanded again. `$$` means `$`, so that `$${NAME}`
 * gives the text `${NAME}`. Before any other character, `$` stands for itself.
 * @throws SubstitutionError for an unset variable without a default, and for an invalid expression.
 */
export function expand(text: string, variables: Variables, dialect: Dialect = "starling"): string {
  const reader: Reader = { text, at: 0, variables, dialect, isUnused: false, depth: 0 };
  let result = "";
  for (;;) {
    const dollar = text.indexOf("$", reader.at);
    if (dollar < 0) return joined(result, text.slice(reader.at));
    result += text.slice(reader.at, dollar);
    const next = text[dollar + 1];
    reader.at = dollar + (next === "$" || next === "{" ? 2 : 1);
    result = joined(result, next === "{" ? readExpression(reader) : "$");
  }
}

const name = /[\p{L}\p{Nd}_]+/uy;

/** Reads from behind `${` to behind its `}`. */
function readExpression(reader: Reader): string {
  const start = reader.at - 2;
  reader.depth += 1;
  if (reader.depth > maxDepth)
    throw new SubstitutionError(`has more than ${maxDepth} nested expressions; write fewer defaults inside defaults`);
  const isLength = take(reader, "#");
  name.lastIndex = reader.at;
  const [variable] = name.exec(reader.text) ?? [];
  if (variable === undefined) throw malformed(reader, start, "has no name of a variable after ${");
  reader.at += variable.length;
  const found = isLength ? lengthOf : functionsOf.find(([sign]) => take(reader, sign))?.[1];
  const value = found?.(reader, variable);
  if (!take(reader, "}")) throw malformed(reader, start, "has no } after the name");
  reader.depth -= 1;
  return value ?? valueFor(reader, variable);
}

/** By their signs. A longer sign comes before its prefix. */
const functionsOf: readonly (readonly [string, (reader: Reader, variable: string) => string])[] = [
  [":=", readDefault],
  [":-", readDefault],
  ["=", readDefault],
  [":?", refuseShell(":?")],
  [":+", refuseShell(":+")],
  [":", readPart],
  ["^^", (reader, variable) => valueFor(reader, variable).toUpperCase()],
  ["^", (reader, variable) => first(valueFor(reader, variable), (letter) => letter.toUpperCase())],
  [",,", (reader, variable) => valueFor(reader, variable).toLowerCase()],
  [",", (reader, variable) => first(valueFor(reader, variable), (letter) => letter.toLowerCase())],
  [
    "//",
    (reader, variable) =>
      readReplacement(reader, variable, (text, { from, to }) => {
        const parts = text.split(from);
        requireRoom(text.length + (parts.length - 1) * (to.length - from.length));
        return parts.join(to);
      }),
  ],
  [
    "/#",
    (reader, variable) =>
      readReplacement(reader, variable, (text, { from, to }) =>
        text.startsWith(from) ? to + text.slice(from.length) : text,
      ),
  ],
  [
    "/%",
    (reader, variable) =>
      readReplacement(reader, variable, (text, { from, to }) =>
        text.endsWith(from) ? text.slice(0, text.length - from.length) + to : text,
      ),
  ],
  ["/", (reader, variable) => readReplacement(reader, variable, (text, { from, to }) => text.replace(from, () => to))],
  ["##", readTrim("start", "longest")],
  ["#", readTrim("start", "shortest")],
  ["%%", readTrim("end", "longest")],
  ["%", readTrim("end", "shortest")],
];

function take(reader: Reader, text: string): boolean {
  if (!reader.text.startsWith(text, reader.at)) return false;
  reader.at += text.length;
  return true;
}

function valueFor({ variables, isUnused }: Reader, variable: string): string {
  const value = ownValue(variables, variable);
  if (value !== undefined || isUnused) return value ?? "";
  throw new SubstitutionError(
    `\${${variable}} is not set; set parameters.${variable}, give it a default as \${${variable}:=text}, or write $\${${variable}} for that text itself`,
  );
}

function lengthOf(reader: Reader, variable: string): string {
  const value = valueFor(reader, variable);
  return String(reader.dialect === "flux" ? Buffer.byteLength(value) : [...value].length);
}

/** An empty value counts as unset for all three signs, as in Flux. In a shell, `=` differs. */
function readDefault(reader: Reader, variable: string): string {
  const value = ownValue(reader.variables, variable) ?? "";
  const { isUnused } = reader;
  reader.isUnused ||= value !== "";
  const text = readText(reader, "}");
  reader.isUnused = isUnused;
  return value === "" ? text : value;
}

/** Flux reads both as defaults. A shell reads `:?` as a failure and `:+` as the opposite of a default. */
function refuseShell(sign: string): (reader: Reader, variable: string) => string {
  return (reader, variable) => {
    if (reader.dialect === "flux") return readDefault(reader, variable);
    throw new SubstitutionError(
      `\${...${sign}...} has different meanings in a shell and in Flux; use := for a default`,
    );
  };
}

/** `:2` or `:2:5`, counted in characters; Flux counts bytes. Flux does not define other texts and negative numbers. */
function readPart(reader: Reader, variable: string): string {
  if (reader.dialect === "flux") return readPartOfBytes(reader, variable);
  const part = /(\d{1,6})(?::(\d{1,6}))?/y;
  part.lastIndex = reader.at;
  const [whole, from = "0", length] = part.exec(reader.text) ?? [];
  if (whole === undefined) {
    throw new SubstitutionError(
      `\${${variable}:...} needs one or two numbers, such as \${${variable}:0:3}; write := for a default`,
    );
  }
  reader.at += whole.length;
  const characters = [...valueFor(reader, variable)].slice(Number(from));
  return characters.slice(0, length === undefined ? characters.length : Number(length)).join("");
}

/**
 * A text that is not a number gives the whole value, as in Flux. An expression with which Flux panics or cuts a character
 * in two is refused.
 */
function readPartOfBytes(reader: Reader, variable: string): string {
  const from = readText(reader, ":");
  const length = take(reader, ":") ? readText(reader, "}") : undefined;
  const value = valueFor(reader, variable);
  const [start, count] = [from, length ?? "0"].map((text) => (/^[+-]?\d{1,6}$/.test(text) ? Number(text) : undefined));
  if (start === undefined || count === undefined) return value;
  const bytes = Buffer.from(value);
  const begin = start < 0 ? Math.max(0, bytes.length + start) : start;
  const part = bytes.subarray(begin, length === undefined ? bytes.length : begin + count);
  const text = part.toString();
  if (count >= 0 && Buffer.from(text).equals(part)) return text;
  throw new SubstitutionError(`\${${variable}:...} cuts a character in two, or has a negative length`);
}

function first(text: string, change: (letter: string) => string): string {
  const [letter = ""] = text;
  return change(letter) + text.slice(letter.length);
}

function readReplacement(
  reader: Reader,
  variable: string,
  replace: (text: string, change: { readonly from: string; readonly to: string }) => string,
): string {
  const from = readText(reader, "/");
  if (from === "" || !take(reader, "/")) {
    throw new SubstitutionError(`\${${variable}/...} needs an old and a new text, such as \${${variable}/old/new}`);
  }
  return replace(valueFor(reader, variable), { from, to: readText(reader, "}") });
}

function readTrim(end: "start" | "end", match: "shortest" | "longest"): (reader: Reader, variable: string) => string {
  return (reader, variable) => {
    const glob = readText(reader, "}");
    if (glob === "")
      throw new SubstitutionError(`\${${variable}} needs a pattern after # or %, such as \${${variable}#v}`);
    return trimmed(valueFor(reader, variable), { glob, end, match });
  };
}

/** Reads up to the next `stop` or `}`. Expressions inside are expanded, and `\/` is a slash that does not stop. */
function readText(reader: Reader, stop: "}" | "/" | ":"): string {
  const { text } = reader;
  let result = "";
  for (;;) {
    const character = text[reader.at];
    if (character === undefined || character === stop || character === "}") return result;
    if (take(reader, "${")) result = joined(result, readExpression(reader));
    else if (stop === "/" && take(reader, "\\/")) result += "/";
    else {
      result += character;
      reader.at += 1;
    }
  }
}

function joined(text: string, more: string): string {
  requireRoom(text.length + more.length);
  return text + more;
}

/** Each step is limited, because nested replacements multiply the length. */
function requireRoom(length: number): void {
  if (length <= maxLength) return;
  throw new SubstitutionError(`expands to more than ${maxLength} characters; shorten the values, or replace less`);
}

/** The message gives the position only, because the expression itself can be part of a password. */
function malformed({ at, text }: Reader, start: number, reason: string): SubstitutionError {
  const known = ":=, :-, =, :2, :2:5, #, ##, %, %%, /, //, /#, /%, ^, ^^, , or ,,";
  const end = text[at] === undefined ? ": the text ends there" : "";
  return new SubstitutionError(
    `the expression at character ${start + 1} ${reason}${end}; write \${NAME}, if needed with one of ${known} after the name, or $\${ for a literal \${`,
  );
}
