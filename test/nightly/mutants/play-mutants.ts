import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { defined } from "#shared/base/defined.ts";
import { type MutationPart, mutationAreas, partId } from "#test/nightly/mutants/areas.ts";
import { explainedMutants } from "#test/nightly/mutants/explained.ts";
import { countsTable, type MutantCounts, netScore, recordCounts } from "#test/nightly/mutants/mutant-counts.ts";
import { type MutantText, mutantText, textKey } from "#test/nightly/mutants/mutant-text.ts";
import { writeMutantsPage } from "#test/nightly/mutants/mutants-page.ts";
import { type PartResult, runPart } from "#test/nightly/mutants/run-part.ts";

export interface MutantsOptions {
  /** The number of processes that run tests. */
  readonly concurrency: number;
  /** Runs only mutants whose code or tests have changed since the last run, and those that it did not reach. */
  readonly changed: boolean;
  /** Makes about every n-th mutant, instead of the sample of the part. */
  readonly every?: number;
  /** Records the counts, and writes them into docs/testing.md. */
  readonly write: boolean;
}

interface Judgement {
  readonly counts: MutantCounts;
  readonly unexplained: readonly MutantText[];
  readonly stale: readonly MutantText[];
}

const root = fileURLToPath(new URL("../../..", import.meta.url));
const known = join(root, ".starling", "mutants", "known");

/**
 * Changes the sources of each area, or of parts of one (`AREA/PART`), in one place at a time and runs the tests below
 * e2e that cover it. Prints how many of these mutants live, and names those that nobody has explained.
 * @returns 1 when too few die in an area, else 0.
 */
export async function playMutants(names: readonly string[], options: MutantsOptions): Promise<number> {
  const all = Object.entries(mutationAreas).flatMap(([area, { parts }]) =>
    Object.entries(parts).map(([name, part]) => ({ area, id: partId(area, name), part })),
  );
  const unknown = names.filter((name) => !all.some(({ area, id }) => name === area || name === id));
  if (unknown.length > 0) throw new Error(`there is no ${unknown.join(", ")}: ${all.map(({ id }) => id).join(", ")}`);
  const chosen = all.filter(({ area, id }) => names.length === 0 || names.includes(area) || names.includes(id));
  mkdirSync(known, { recursive: true });
  const played: { readonly area: string; readonly counts: MutantCounts }[] = [];
  for (const { area, id, part: whole } of chosen) {
    const part = { ...whole, ...defined({ every: options.every }) };
    const { counts, unexplained, stale } = await playPart(id, part, options);
    console.log(`\n${countsTable({ [id]: counts })}\n`);
    for (const mutant of unexplained) console.log(`lives in ${mutant.file}:\n  ${mutant.code}\n  ${mutant.mutated}`);
    for (const mutant of stale) console.log(`dies, though explained, in ${mutant.file}:\n  ${mutant.mutated}`);
    played.push({ area, counts });
    if (!options.write) continue;
    recordCounts(id, counts);
    writeMutantsPage();
  }
  const byArea = Map.groupBy(played, ({ area }) => area);
  const weak = [...byArea].filter(([area, parts]) => {
    return netScore(parts.map(({ counts }) => counts)) < (mutationAreas[area]?.least ?? 100);
  });
  for (const [area] of weak) console.log(`${area}: fewer than ${mutationAreas[area]?.least} % die`);
  return weak.length === 0 ? 0 : 1;
}

async function playPart(id: string, part: MutationPart, options: MutantsOptions): Promise<Judgement> {
  console.log(`${id}: ${part.mutate.join(" ")}`);
  const { concurrency, changed } = options;
  const file = join(known, `${id.replace("/", "-")}-${part.every ?? 1}.json`);
  const result = await runPart(part, { root, concurrency, known: file, again: changed ? "changed" : "all" });
  return judge(part, result);
}

function judge(part: MutationPart, result: PartResult): Judgement {
  const texts = [...result.survived, ...result.uncovered].map((mutant) => mutantText(mutant, root));
  const explained = new Set(explainedMutants.map(textKey));
  const unexplained = texts.filter((text) => !explained.has(textKey(text)));
  const alive = new Set(texts.map(textKey));
  const { killed, timedOut, refused, notSampled } = result;
  const counts = {
    every: part.every ?? 1,
    killed,
    timedOut,
    refused,
    survived: result.survived.length,
    uncovered: result.uncovered.length,
    explained: texts.length - unexplained.length,
    notSampled,
  };
  const stale = explainedMutants.filter((text) => part.mutate.includes(text.file) && !alive.has(textKey(text)));
  return { counts, unexplained, stale: notSampled > 0 ? [] : stale };
}
