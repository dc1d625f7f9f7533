import { plainLine } from "#shared/base/plain-text.ts";
import { shorten } from "#shared/words/shorten.ts";

export interface TextTreeNode {
  readonly name: string;
  /** Texts behind the name, without empty ones. */
  readonly about: readonly string[];
  readonly children: readonly TextTreeNode[];
}

export function branch(name: string, about: readonly string[], children: readonly TextTreeNode[] = []): TextTreeNode {
  return { name, about: about.filter((text) => text !== ""), children };
}

/** A tree; the texts of siblings begin in one column. @param columns - width of the terminal. Absent: nothing is cut. */
export function treeText(root: TextTreeNode, columns?: number): string {
  const lines = [lineOf(root, 0), ...childLines(root.children, "")];
  return lines.map((line) => `${columns === undefined ? plainLine(line) : cut(plainLine(line), columns)}\n`).join("");
}

function childLines(children: readonly TextTreeNode[], indent: string): readonly string[] {
  const width = Math.max(0, ...children.map(({ name }) => [...name].length));
  return children.flatMap((child, index) => {
    const isLast = index === children.length - 1;
    const own = `${indent}${isLast ? "└─ " : "├─ "}${lineOf(child, width)}`;
    return [own, ...childLines(child.children, `${indent}${isLast ? "   " : "│  "}`)];
  });
}

function lineOf({ name, about }: TextTreeNode, width: number): string {
  if (about.length === 0) return name;
  return `${name}${" ".repeat(Math.max(0, width - [...name].length))}   ${about.join("   ")}`;
}

/** Shortens a line behind its indent, because `shorten` would drop the indent. */
function cut(line: string, columns: number): string {
  const indent = /^[\s│├└─]*/.exec(line)?.[0] ?? "";
  const rest = line.slice(indent.length);
  return [...line].length <= columns ? line : `${indent}${shorten(rest, Math.max(20, columns - [...indent].length))}`;
}
