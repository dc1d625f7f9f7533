/** The lines of sources, and how many of them are in functions that await something. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseSync, Visitor } from "oxc-parser";

export interface SourceLines {
  readonly files: number;
  readonly lines: number;
  /** Lines of the outermost functions, with their comments inside. A method is an outermost function. */
  readonly inFunctions: number;
  /** Those of functions that are async, or have an async function inside: only these can await something. */
  readonly inAwaiting: number;
}

/** Counts the TypeScript sources of some folders. @param folders - paths from `root`. */
export function sourceLinesOf(root: string, folders: readonly string[]): SourceLines {
  const paths = folders.flatMap((folder) => globSync(`${folder}/**/*.ts`, { cwd: root }));
  const counts = paths.map((path) => linesOf(readFileSync(join(root, path), "utf8")));
  const sum = (of: keyof (typeof counts)[number]) => counts.reduce((total, count) => total + count[of], 0);
  return { files: paths.length, lines: sum("lines"), inFunctions: sum("inFunctions"), inAwaiting: sum("inAwaiting") };
}

/** A line that two functions share counts once, and as awaiting when one of them is. */
export function linesOf(source: string): Omit<SourceLines, "files"> {
  const [all, awaiting] = [new Set<number>(), new Set<number>()];
  for (const { first, last, awaits } of outermostFunctions(source)) {
    for (let line = first; line <= last; line++) {
      all.add(line);
      if (awaits) awaiting.add(line);
    }
  }
  return { lines: lineAt(source, source.length - 1), inFunctions: all.size, inAwaiting: awaiting.size };
}

interface OutermostFunction {
  readonly first: number;
  readonly last: number;
  awaits: boolean;
}

function outermostFunctions(source: string): readonly OutermostFunction[] {
  const { program, errors } = parseSync("source.ts", source);
  if (errors[0] !== undefined) throw new Error(errors[0].message);
  const found: OutermostFunction[] = [];
  let depth = 0;
  const enter = (node: { readonly start: number; readonly end: number; readonly async: boolean }) => {
    if (depth === 0)
      found.push({ first: lineAt(source, node.start), last: lineAt(source, node.end - 1), awaits: false });
    depth++;
    const outermost = found.at(-1);
    if (node.async && outermost !== undefined) outermost.awaits = true;
  };
  const leave = () => {
    depth--;
  };
  new Visitor({
    FunctionDeclaration: enter,
    "FunctionDeclaration:exit": leave,
    FunctionExpression: enter,
    "FunctionExpression:exit": leave,
    ArrowFunctionExpression: enter,
    "ArrowFunctionExpression:exit": leave,
  }).visit(program);
  return found;
}

/** The number of the line that has a character, from 1. */
function lineAt(source: string, character: number): number {
  return source.slice(0, character).split("\n").length;
}
