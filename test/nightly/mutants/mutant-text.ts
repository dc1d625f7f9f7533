import { readFileSync } from "node:fs";
import { relative } from "node:path";

/** A mutant as Stryker describes it; positions count from 0. */
export interface RunMutant {
  readonly id: string;
  readonly fileName: string;
  readonly mutatorName: string;
  readonly replacement?: string;
  readonly location: { readonly start: Position; readonly end: Position };
}

interface Position {
  readonly line: number;
  readonly column: number;
}

/** Identifies a mutant by its text, so that lines that are added above it do not matter. */
export interface MutantText {
  readonly file: string;
  /** The original line on which it begins. */
  readonly code: string;
  /** The same code with the mutant in it, on one line. */
  readonly mutated: string;
}

export function mutantText(mutant: RunMutant, root: string): MutantText {
  const { before, after, first } = cut(mutant);
  const prefix = before.slice(before.lastIndexOf("\n") + 1);
  const suffix = after.slice(0, after.search(/\n|$/));
  const mutated = `${prefix}${mutant.replacement ?? ""}${suffix}`;
  return { file: relative(root, mutant.fileName), code: first.trim(), mutated: mutated.replaceAll(/\s+/g, " ").trim() };
}

/** Returns the whole file with the mutant in it. */
export function mutatedFile(mutant: RunMutant): string {
  const { before, after } = cut(mutant);
  return `${before}${mutant.replacement ?? ""}${after}`;
}

function cut(mutant: RunMutant): { readonly before: string; readonly after: string; readonly first: string } {
  const text = readFileSync(mutant.fileName, "utf8");
  const lines = text.split("\n");
  const { start, end } = mutant.location;
  const offset = ({ line, column }: Position) => lines.slice(0, line).join("\n").length + (line > 0 ? 1 : 0) + column;
  return { before: text.slice(0, offset(start)), after: text.slice(offset(end)), first: lines[start.line] ?? "" };
}

export function textKey({ file, code, mutated }: MutantText): string {
  return JSON.stringify([file, code, mutated]);
}
