import { compileLinearRegex } from "#shared/source/linear-regex.ts";

/** The instructions of a compiled expression, by the numbers of re2js. The tests of this file break when it changes them. */
const alternatives = [1, 2];
const passes = [3, 4, 7];
const fails = 5;
const matches = 6;
const readsRanges = [8, 9];

interface Instruction {
  readonly op: number;
  readonly out: number;
  readonly arg: number;
  /** The one character that it reads, or the first and the last of each range. */
  readonly runes: Int32Array;
}

/** The beginning of a text: a key, and a name. */
export interface NamedBeginning {
  /** The texts that may stand before the name, such as `repo:`. */
  readonly keys: readonly string[];
  /** The characters that end a name. Without any, only the end of the text does. */
  readonly ends: string;
}

interface Names {
  readonly whole: ReadonlySet<string>;
  readonly begun: ReadonlySet<string>;
  readonly ends: string;
}

/** An expression with more ways than this names nobody. */
const maxSteps = 20_000;
/** No list that somebody writes is longer. */
const maxRange = 200;

/**
 * Whether every text that the expression matches begins with a key and a name, and each of these names stands in the
 * expression letter by letter: `(acme|corp)/.*` names two, while `(acme|.*)/shop` and `team[0-9]/shop` name none. Capitals
 * count as small letters. It follows the compiled expression, so that it overlooks no way to write one. It takes a
 * position such as `$` for granted, and an instruction that it does not know for one that reads anything.
 */
export function namesBeginning(pattern: string, { keys, ends }: NamedBeginning): boolean {
  const regex = compileLinearRegex(pattern);
  if (typeof regex === "string") return false;
  const { inst, start } = regex.re2().prog as { readonly inst: readonly Instruction[]; readonly start: number };
  const names = namesIn(pattern, keys, ends);
  const seen = new Set<string>();
  const open = [{ at: start, text: "" }];
  for (let step = open.pop(); step !== undefined; step = open.pop()) {
    const { at, text } = step;
    const place = `${at} ${text}`;
    if (seen.has(place)) continue;
    if (seen.add(place).size > maxSteps) return false;
    const next = inst[at] === undefined ? undefined : textsAfter(inst[at], text, names);
    if (next === undefined) return false;
    open.push(...next);
  }
  return true;
}

type Step = { readonly at: number; readonly text: string };

/** The places after one instruction at which no name is over yet. Undefined if a text can begin in another way. */
function textsAfter({ op, out, arg, runes }: Instruction, text: string, names: Names): readonly Step[] | undefined {
  if (op === fails) return [];
  if (op === matches) return names.whole.has(text) ? [] : undefined;
  if (passes.includes(op)) return [{ at: out, text }];
  if (alternatives.includes(op)) return [out, arg].map((at) => ({ at, text }));
  const read = readsRanges.includes(op) ? charactersIn(runes) : undefined;
  const more = read?.filter((character) => !(names.ends.includes(character) && names.whole.has(text)));
  if (more === undefined || more.some((character) => !names.begun.has(text + character))) return undefined;
  return more.map((character) => ({ at: out, text: text + character }));
}

/** The characters in small letters. Undefined if they are too many. */
function charactersIn(runes: Int32Array): readonly string[] | undefined {
  const read = new Set<string>();
  for (let index = 0; index < runes.length; index += 2) {
    const first = runes[index] ?? 0;
    const last = runes[index + 1] ?? first;
    if (last - first > maxRange || read.size > maxRange) return undefined;
    for (let rune = first; rune <= last; rune++) read.add(folded(String.fromCodePoint(rune)));
  }
  return [...read];
}

/** The words of an expression, as names after each of the keys. A character that is no letter of a text parts two words. */
function namesIn(pattern: string, keys: readonly string[], ends: string): Names {
  const literal = pattern.replaceAll(
    /\\([^A-Za-z0-9])|\\.|[.^$*+?()[\]{}|<>]/gs,
    (_all, escaped?: string) => escaped ?? "\n",
  );
  const words = folded(literal)
    .split(/[\n/:]/)
    .filter((word) => word !== "");
  const whole = new Set(keys.flatMap((key) => words.map((word) => key + word)));
  const begun = new Set(
    [...whole].flatMap((name) => Array.from({ length: name.length }, (_, at) => name.slice(0, at + 1))),
  );
  return { whole, begun, ends };
}

/** Two letters that expressions without case take for one, such as the sign of Kelvin, become one. */
function folded(text: string): string {
  return text.toUpperCase().toLowerCase();
}
