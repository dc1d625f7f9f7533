/**
 * `${NAME}` in a text, with the functions that Flux has (drone/envsubst as fluxcd/pkg has it, strict mode). What it does
 * otherwise is said at its place: characters are counted and not bytes, and what would mean another thing in a shell is
 * refused.
 */
import { ownValue } from "#shared/base/own-value.ts";
import { trimmed } from "#shared/source/substitution/trim.ts";

export type Variables = Readonly<Record<string, string>>;

/** `flux`: bytes are counted, `:?` and `:+` are defaults, and a part that is no number is the whole, as there. */
export type Dialect = "starling" | "flux";

/** A text that cannot be expanded. It never holds what stands around the expression: that may be a secret. */
export class SubstitutionError extends Error {
  constructor(reason: string) {
    super(reason);
    this.name = "SubstitutionError";
  }
}

/** Where the reader is, and what it knows. Of a default that is not needed only the form is read: it knows nothing. */
interface Reader {
  readonly text: string;
  at: number;
  readonly variables: Variables;
  readonly dialect: Dialect;
  isUnused: boolean;
  depth: number;
}

/** Defaults in defaults: deeper ones are a mistake, or there to fill the stack. */
const maxDepth = 20;
/** In characters, of a text and of each part of it: more than an API server takes of a whole object. */
const maxLength = 2 * 1024 * 1024;

/**
 * Every `${...}` of the text replaced, once: what comes out is not looked at again. `$$` is a `$`, so that `$${NAME}` is
 * the text `${NAME}`; a `$` before anything else is itself.
 * @throws SubstitutionError for a variable that is not set and has no default, and for what is no expression.
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

/** Behind `${`, to behind its `}`. */
function readExpression(reader: Reader): string {
  const start = reader.at - 2;
  reader.depth += 1;
  if (reader.depth > maxDepth) throw new SubstitutionError(`has more than ${maxDepth} expressions in each other`);
  const isLength = take(reader, "#");
  name.lastIndex = reader.at;
  const [variable] = name.exec(reader.text) ?? [];
  if (variable === undefined) throw malformed(reader, start, "names no variable behind ${");
  reader.at += variable.length;
  const found = isLength ? lengthOf : functionsOf.find(([sign]) => take(reader, sign))?.[1];
  const value = found?.(reader, variable);
  if (!take(reader, "}")) throw malformed(reader, start, "has no } where its name ends");
  reader.depth -= 1;
  return value ?? valueFor(reader, variable);
}

/** By their signs; a sign stands before one that it begins with. */
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

/** What is empty counts as not set, for all three signs: as in Flux, and not as `=` does in a shell. */
function readDefault(reader: Reader, variable: string): string {
  const value = ownValue(reader.variables, variable) ?? "";
  const { isUnused } = reader;
  reader.isUnused ||= value !== "";
  const text = readText(reader, "}");
  reader.isUnused = isUnused;
  return value === "" ? text : value;
}

/** Flux takes both for a default, a shell for a failure and for the contrary of a default. */
function refuseShell(sign: string): (reader: Reader, variable: string) => string {
  return (reader, variable) => {
    if (reader.dialect === "flux") return readDefault(reader, variable);
    throw new SubstitutionError(
      `\${...${sign}...} means one thing in a shell and another one in Flux; use := for a default`,
    );
  };
}

/** `:2` or `:2:5`. In characters, where Flux cuts bytes; what is no number, or a negative one, it does not say. */
function readPart(reader: Reader, variable: string): string {
  if (reader.dialect === "flux") return readPartOfBytes(reader, variable);
  const part = /(\d{1,6})(?::(\d{1,6}))?/y;
  part.lastIndex = reader.at;
  const [whole, from = "0", length] = part.exec(reader.text) ?? [];
  if (whole === undefined) {
    throw new SubstitutionError(
      `\${${variable}:...} needs a number or two, as \${${variable}:0:3}, or := for a default`,
    );
  }
  reader.at += whole.length;
  const characters = [...valueFor(reader, variable)].slice(Number(from));
  return characters.slice(0, length === undefined ? characters.length : Number(length)).join("");
}

/** What is no number leaves the whole value; where Flux panics, or cuts a character in two, there is nothing to apply. */
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
    throw new SubstitutionError(`\${${variable}/...} needs what to replace and what by, as \${${variable}/old/new}`);
  }
  return replace(valueFor(reader, variable), { from, to: readText(reader, "}") });
}

function readTrim(end: "start" | "end", match: "shortest" | "longest"): (reader: Reader, variable: string) => string {
  return (reader, variable) => {
    const glob = readText(reader, "}");
    if (glob === "") throw new SubstitutionError(`\${${variable}} has nothing to trim behind # or %`);
    return trimmed(valueFor(reader, variable), { glob, end, match });
  };
}

/** To before the next `stop`, or to before a `}`; expressions in it are expanded, and `\/` is a slash that stops nothing. */
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

/** Each step is bounded: replacements in each other grow by their product. */
function requireRoom(length: number): void {
  if (length <= maxLength) return;
  throw new SubstitutionError(`comes to more than ${maxLength} characters; shorten the values, or replace less`);
}

/** What stands there may be a part of a password: where it is says enough. */
function malformed({ at, text }: Reader, start: number, reason: string): SubstitutionError {
  const known = ":=, :-, =, :2, :2:5, #, ##, %, %%, /, //, /#, /%, ^, ^^, , or ,,";
  const end = text[at] === undefined ? ": the text ends before" : "";
  return new SubstitutionError(
    `the expression at character ${start + 1} ${reason}${end}; write \${NAME}, with one of ${known}, or $\${ for the text itself`,
  );
}
