/**
 * Patterns of gitignore. Packages for them make regular expressions, of which a pattern with four `**` took 3.5 seconds for one path of 120
 * folders. Here a pattern is matched in steps that are counted.
 */
const maxPatterns = 200;
const maxPatternLength = 256;
/** Some seconds' work. 20,000 files with 200 usual patterns take a third of it. */
const maxSteps = 150_000_000;

/** Patterns that are refused. */
export class IgnoreError extends Error {}

/** One character, or a part of a name: `*` stands for any number of characters. */
type Token = string | RegExp | "many";
/** A part of a path; `**` stands for any number of parts. */
type Part = "any" | { readonly text: string } | { readonly ending: string } | { readonly tokens: readonly Token[] };

/** Counts the work of all patterns of a tree. */
export interface StepMeter {
  steps: number;
}

export interface IgnorePattern {
  readonly parts: readonly Part[];
  readonly takesBack: boolean;
  readonly isForFolders: boolean;
}

/** @returns what is wrong with the patterns, to follow the name of their field. */
export function ignoreProblem(text: string): string | undefined {
  try {
    parsePatterns(text);
    const open = linesOf(text).find((line) => partsOf(bodyOf(line).body) === undefined);
    return open === undefined ? undefined : `has a pattern with a [ that no ] closes: ${JSON.stringify(open)}`;
  } catch (error) {
    if (error instanceof IgnoreError) return error.message;
    throw error;
  }
}

/** @throws IgnoreError for too many patterns, or a pattern that is too long. */
export function parsePatterns(text: string): readonly IgnorePattern[] {
  const lines = linesOf(text);
  if (lines.length > maxPatterns) throw new IgnoreError(`has more than ${maxPatterns} patterns`);
  const long = lines.find((line) => line.length > maxPatternLength);
  if (long !== undefined)
    throw new IgnoreError(
      `has a pattern of more than ${maxPatternLength} characters: ${JSON.stringify(long.slice(0, 40))}…`,
    );
  return lines.flatMap((line) => {
    const { body, ...rest } = bodyOf(line);
    const parts = partsOf(body);
    return parts === undefined || parts.length === 0 ? [] : [{ parts, ...rest }];
  });
}

/** Without comments, empty lines, and the spaces at an end that no backslash protects. */
function linesOf(text: string): readonly string[] {
  return text
    .replace(/^\uFEFF/, "")
    .split(/\r?\n/)
    .map((line) => withoutSpaces(line))
    .filter((line) => line !== "" && !line.startsWith("#"));
}

function withoutSpaces(line: string): string {
  const text = line.trimEnd();
  const slashes = text.length - text.replace(/\\+$/, "").length;
  return slashes % 2 === 1 && text.length < line.length ? `${text} ` : text;
}

function bodyOf(line: string): { readonly body: string; readonly takesBack: boolean; readonly isForFolders: boolean } {
  const takesBack = line.startsWith("!");
  const body = takesBack ? line.slice(1) : line;
  return { body: body.replace(/\/$/, ""), takesBack, isForFolders: body.endsWith("/") };
}

/** A pattern with a slash before its end is about one place, and any other one about every folder. */
function partsOf(body: string): readonly Part[] | undefined {
  const isAnchored = body.includes("/");
  const parts: Part[] = isAnchored ? [] : ["any"];
  for (const text of body.replace(/^\//, "").split("/")) {
    if (text === "") continue;
    if (text === "**" && isAnchored) {
      if (parts.at(-1) !== "any") parts.push("any");
      continue;
    }
    const tokens = tokensOf(text);
    if (tokens === undefined) return undefined;
    const isPlain = (some: readonly Token[]) => some.every((each) => typeof each === "string" && each !== "many");
    const [first, ...rest] = tokens;
    if (isPlain(tokens)) parts.push({ text: tokens.join("") });
    else parts.push(first === "many" && isPlain(rest) ? { ending: rest.join("") } : { tokens });
  }
  return parts.length === 1 && parts[0] === "any" && !isAnchored ? [] : parts;
}

/** @returns undefined for a class of characters that is not closed. */
function tokensOf(text: string): readonly Token[] | undefined {
  const characters = [...text];
  const tokens: Token[] = [];
  for (let at = 0; at < characters.length; at++) {
    const character = characters[at] ?? "";
    if (character === "\\") tokens.push(characters[++at] ?? "\\");
    else if (character === "*") {
      if (tokens.at(-1) !== "many") tokens.push("many");
    } else if (character === "?") tokens.push(anything);
    else if (character === "[") {
      const found = classAt(characters, at);
      if (found === undefined) return undefined;
      tokens.push(found.regex);
      at = found.end;
    } else tokens.push(character);
  }
  return tokens;
}

const anything = /^.$/su;
const nothing = /(?!)/;

/** Classes as `[[:digit:]]`. */
const named: Readonly<Record<string, string>> = {
  alnum: "\\p{L}\\p{N}",
  alpha: "\\p{L}",
  blank: " \\t",
  digit: "0-9",
  lower: "\\p{Ll}",
  punct: "!-\\/:-@\\[-`\\{-~",
  space: "\\s",
  upper: "\\p{Lu}",
  xdigit: "0-9A-Fa-f",
};

/** A class of characters matches one character, in one step. */
function classAt(characters: readonly string[], start: number): { regex: RegExp; end: number } | undefined {
  let at = start + 1;
  const isNot = characters[at] === "!" || characters[at] === "^";
  if (isNot) at++;
  let inside = "";
  for (let first = true; ; first = false, at++) {
    const character = characters[at];
    if (character === undefined) return undefined;
    if (character === "]" && !first) break;
    const [whole = "", name = ""] = /^\[:(\w+):\]/.exec(characters.slice(at, at + 12).join("")) ?? [];
    if (Object.hasOwn(named, name)) {
      inside += named[name];
      at += whole.length - 1;
    } else if (character === "-" && inside !== "" && characters[at + 1] !== "]") inside += "-";
    else {
      const escaped = character === "\\" ? characters[++at] : character;
      if (escaped === undefined) return undefined;
      inside += `\\u{${escaped.codePointAt(0)?.toString(16)}}`;
    }
  }
  try {
    return { regex: new RegExp(`^[${isNot ? "^" : ""}${inside}]$`, "u"), end: at };
  } catch {
    // A range from a greater character to a smaller one contains nothing.
    return { regex: isNot ? anything : nothing, end: at };
  }
}

/** Whether the parts match all names. The last `**` alone is tried again, which is enough. */
export function matches({ parts }: IgnorePattern, names: readonly string[], meter: StepMeter): boolean {
  let part = 0;
  let name = 0;
  let retry: { readonly part: number; name: number } | undefined;
  while (name < names.length) {
    count(meter, 1);
    const desired = parts[part];
    if (desired === "any") {
      // At the end it stands for at least one name.
      if (part === parts.length - 1) return true;
      retry = { part: ++part, name };
    } else if (desired !== undefined && matchesName(desired, names[name] ?? "", meter)) {
      part++;
      name++;
    } else if (retry !== undefined) {
      retry.name++;
      part = retry.part;
      name = retry.name;
    } else return false;
  }
  return part === parts.length;
}

/** Whether an entry below a folder could match, as far as the folder's names tell. */
export function mayMatchBelow({ parts }: IgnorePattern, folder: readonly string[], meter: StepMeter): boolean {
  for (const [index, name] of folder.entries()) {
    const desired = parts[index];
    if (desired === "any") return true;
    if (desired === undefined || !matchesName(desired, name, meter)) return false;
  }
  return parts.length > folder.length;
}

function matchesName(part: Exclude<Part, "any">, name: string, meter: StepMeter): boolean {
  if ("text" in part) return part.text === name;
  if ("ending" in part) return name.endsWith(part.ending);
  const { tokens } = part;
  const characters = [...name];
  let token = 0;
  let at = 0;
  let retry: { readonly token: number; at: number } | undefined;
  let steps = 0;
  while (at < characters.length) {
    steps++;
    const desired = tokens[token];
    const character = characters[at] ?? "";
    if (desired === "many") retry = { token: ++token, at };
    else if (desired !== undefined && (typeof desired === "string" ? desired === character : desired.test(character))) {
      token++;
      at++;
    } else if (retry !== undefined) {
      retry.at++;
      token = retry.token;
      at = retry.at;
    } else break;
  }
  count(meter, steps);
  if (at < characters.length) return false;
  while (tokens[token] === "many") token++;
  return token === tokens.length;
}

function count(meter: StepMeter, steps: number): void {
  meter.steps += steps;
  if (meter.steps > maxSteps) throw new IgnoreError("has patterns that take too long for so many files; write fewer *");
}
