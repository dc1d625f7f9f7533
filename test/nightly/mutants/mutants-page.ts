import { readFileSync, writeFileSync } from "node:fs";
import { explainedMutants } from "#test/nightly/mutants/explained.ts";
import { countsTable, recordedCounts } from "#test/nightly/mutants/mutant-counts.ts";

const page = new URL("../../../docs/testing.md", import.meta.url);
const counts = /(?<=<!-- mutants: [^>]*-->\n\n)[\s\S]*?(?=\n\n<!-- end of mutants -->)/;
const living = /(?<=<!-- living mutants: [^>]*-->\n\n)[\s\S]*?(?=\n\n<!-- end of living mutants -->)/;

/** Writes the recorded counts into docs/testing.md, and the explanations below them. */
export function writeMutantsPage(): void {
  const text = readFileSync(page, "utf8");
  writeFileSync(
    page,
    text.replace(counts, () => countsTable(recordedCounts())).replace(living, () => explanations()),
  );
}

/** Reads the two parts of docs/testing.md about mutants. */
export function mutantsOnPage() {
  const text = readFileSync(page, "utf8");
  return { counts: counts.exec(text)?.[0], explanations: living.exec(text)?.[0] };
}

export function explanations(): string {
  const files = Map.groupBy(explainedMutants, ({ file }) => file);
  const sections = [...files].map(([file, mutants]) => {
    const lines = mutants.map(({ code, mutated, reason }) => `  - ${quoted(code)} → ${quoted(mutated)}: ${reason}`);
    return [`- ${file}`, ...lines].join("\n");
  });
  return sections.length === 0 ? "None." : sections.join("\n");
}

/** Quotes code in Markdown, also if it contains backquotes itself. */
function quoted(code: string): string {
  return code.includes("`") ? `\`\` ${code} \`\`` : `\`${code}\``;
}
