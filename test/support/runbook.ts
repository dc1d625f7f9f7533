import { readFileSync } from "node:fs";

/** One section of the chapter "Alarms" of docs/runbook.md. */
export interface RunbookSection {
  /** The anchor as links use it. */
  readonly anchor: string;
  /** The words that begin its paragraphs: `Description`, `Investigation`, `Resolution`. */
  readonly parts: readonly string[];
  readonly text: string;
  /** Lines of its blocks of commands that need nothing but an installation. */
  readonly commands: readonly string[];
}

export function runbookSections(): readonly RunbookSection[] {
  const page = readFileSync("docs/runbook.md", "utf8");
  const chapter = /\n## Alarms\n(?<text>.*?)(?=\n## |$)/s.exec(`${page}`)?.groups?.text ?? "";
  return chapter
    .split("\n### ")
    .slice(1)
    .map((section) => {
      const title = section.slice(0, section.indexOf("\n"));
      const blocks = [...section.matchAll(/```sh\n(.*?)```/gs)].map(([, lines = ""]) => lines.trim());
      return {
        anchor: title
          .toLowerCase()
          .replaceAll(/[^\w -]/g, "")
          .replaceAll(" ", "-"),
        parts: [...section.matchAll(/^\*\*(\w+)\.\*\*/gm)].map(([, word = ""]) => word),
        text: section,
        commands: blocks.flatMap((block) => block.split("\n")),
      };
    });
}
