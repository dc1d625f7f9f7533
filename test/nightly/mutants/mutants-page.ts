import { readFileSync, writeFileSync } from "node:fs";
import { explainedMutants } from "#test/nightly/mutants/explained.ts";

const page = new URL("../../../docs/testing.md", import.meta.url);
const counts = /(?<=<!-- mutants: [^>]*-->\n\n)[\s\S]*?(?=\n\n<!-- end of mutants -->)/;
const living = /(?<=<!-- living mutants: [^>]*-->\n\n)[\s\S]*?(?=\n\n<!-- end of living mutants -->)/;

export const mutantsTableHead = [
  "| area | mutants | killed | timed out | refused by types | survived | not covered | explained | score | net |",
  "|---|---|---|---|---|---|---|---|---|---|",
].join("\n");

/** Puts the rows of areas into the table of docs/testing.md, and the explanations below it. */
export function writeMutantsPage(rows: readonly string[]): void {
  const text = readFileSync(page, "utf8");
  const before = (counts.exec(text)?.[0] ?? "").split("\n").slice(2);
  const byArea = new Map([...before, ...rows].map((row) => [row.split(" | ")[0], row]));
  const table = [mutantsTableHead, ...byArea.values()].join("\n");
  writeFileSync(
    page,
    text.replace(counts, () => table).replace(living, () => explanations()),
  );
}

/** What docs/testing.md says of mutants that live. */
export function explanationsOnPage(): string | undefined {
  return living.exec(readFileSync(page, "utf8"))?.[0];
}

export function explanations(): string {
  const files = Map.groupBy(explainedMutants, ({ file }) => file);
  const sections = [...files].map(([file, mutants]) => {
    const lines = mutants.map(({ code, mutated, reason }) => `  - ${quoted(code)} → ${quoted(mutated)}: ${reason}`);
    return [`- ${file}`, ...lines].join("\n");
  });
  return sections.length === 0 ? "None." : sections.join("\n");
}

/** As code in Markdown, whatever quotes it has itself. */
function quoted(code: string): string {
  return code.includes("`") ? `\`\` ${code} \`\`` : `\`${code}\``;
}
