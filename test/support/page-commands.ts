/** Reads the commands that a page of the documentation shows. */
import { readFileSync } from "node:fs";

export interface PageBlock {
  /** The heading above the block, without its marks. */
  readonly heading: string;
  /** The text after the fence: `sh`, `sh account` or `yaml`. */
  readonly info: string;
  readonly text: string;
}

export function pageText(page: string): string {
  return readFileSync(new URL(`../../docs/${page}`, import.meta.url), "utf8");
}

/** The fenced blocks of a page in docs/, in their order. */
export function pageBlocks(page: string): readonly PageBlock[] {
  const text = pageText(page);
  const blocks: PageBlock[] = [];
  let heading = "";
  for (const [, title, info, body] of text.matchAll(/^#+ ([^\n]+)$|^```([^\n]*)\n(.*?)^```$/gms)) {
    if (title !== undefined) heading = title;
    else blocks.push({ heading, info: info ?? "", text: body ?? "" });
  }
  return blocks;
}

/** One command per line, without lines that contain only a comment. */
export function commandsOf({ text }: PageBlock): readonly string[] {
  return text
    .split("\n")
    .map((line) => line.replace(/ +#.*$|^#.*$/, "").trim())
    .filter((line) => line !== "");
}

/** The words of a command, with quotes removed as in a shell. */
export function wordsOf(command: string): readonly string[] {
  return [...command.matchAll(/(?:"((?:\\.|[^"])*)"|'([^']*)'|(\S+))/g)].map(
    ([, double, single, bare]) => double?.replaceAll(/\\(.)/g, "$1") ?? single ?? bare ?? "",
  );
}
