import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type MutationArea, mutationAreas } from "#test/nightly/mutants/areas.ts";
import { explainedMutants } from "#test/nightly/mutants/explained.ts";
import { type MutantText, mutantText, textKey } from "#test/nightly/mutants/mutant-text.ts";
import { mutantsTableHead, writeMutantsPage } from "#test/nightly/mutants/mutants-page.ts";
import { type PartResult, runPart } from "#test/nightly/mutants/run-part.ts";

export interface MutantsOptions {
  /** Processes that run tests. */
  readonly concurrency: number;
  /** Only mutants whose code or tests have changed since the last run are run. */
  readonly changed: boolean;
  /** The counts go into docs/testing.md. */
  readonly write: boolean;
}

interface AreaResult {
  readonly row: string;
  readonly unexplained: readonly MutantText[];
  readonly stale: readonly MutantText[];
  readonly enough: boolean;
}

const root = fileURLToPath(new URL("../../..", import.meta.url));

/**
 * Changes the sources of each area in one place at a time and runs the tests below e2e that cover it. Prints how many of
 * these mutants live, and which of them nobody has explained.
 * @returns 1 when too few die in an area, else 0.
 */
export async function playMutants(names: readonly string[], options: MutantsOptions): Promise<number> {
  const unknown = names.filter((name) => !Object.hasOwn(mutationAreas, name));
  if (unknown.length > 0) {
    throw new Error(`there is no area ${unknown.join(", ")}: ${Object.keys(mutationAreas).join(", ")}`);
  }
  const chosen = Object.entries(mutationAreas).filter(([name]) => names.length === 0 || names.includes(name));
  const results: AreaResult[] = [];
  for (const [name, area] of chosen) {
    const result = await playArea(name, area, options);
    console.log(`\n${mutantsTableHead}\n${result.row}\n`);
    for (const mutant of result.unexplained)
      console.log(`lives in ${mutant.file}:\n  ${mutant.code}\n  ${mutant.mutated}`);
    for (const mutant of result.stale) console.log(`dies, though explained, in ${mutant.file}:\n  ${mutant.mutated}`);
    if (!result.enough) console.log(`${name}: fewer than ${area.least} % die`);
    results.push(result);
  }
  if (options.write) writeMutantsPage(results.map(({ row }) => row));
  return results.every(({ enough }) => enough) ? 0 : 1;
}

async function playArea(name: string, area: MutationArea, options: MutantsOptions): Promise<AreaResult> {
  const known = join(root, ".starling", "mutants", "known");
  mkdirSync(known, { recursive: true });
  const parts: PartResult[] = [];
  for (const [index, part] of area.parts.entries()) {
    console.log(`${name}: ${part.mutate.join(" ")}`);
    const file = join(known, `${name}-${index}.json`);
    parts.push(
      await runPart(part, {
        root,
        concurrency: options.concurrency,
        ...(options.changed ? { known: file } : {}),
      }),
    );
  }
  return judge({ name, area, parts });
}

interface PlayedArea {
  readonly name: string;
  readonly area: MutationArea;
  readonly parts: readonly PartResult[];
}

function judge({ name, area, parts }: PlayedArea): AreaResult {
  const sum = (count: (part: PartResult) => number) => parts.reduce((all, part) => all + count(part), 0);
  const living = parts.flatMap(({ survived, uncovered }) => [...survived, ...uncovered]);
  const texts = living.map((mutant) => mutantText(mutant, root));
  const explained = new Set(explainedMutants.map(textKey));
  const unexplained = texts.filter((text) => !explained.has(textKey(text)));
  const [survived, uncovered] = [sum((part) => part.survived.length), sum((part) => part.uncovered.length)];
  const [killed, timedOut, refused] = [
    sum((part) => part.killed),
    sum((part) => part.timedOut),
    sum((part) => part.refused),
  ];
  const dead = killed + timedOut + refused;
  const all = dead + survived + uncovered;
  const skipped = sum((part) => part.notSampled);
  const score = percent(dead, all);
  const net = percent(dead, dead + unexplained.length);
  const of = skipped > 0 ? `${all} of ${all + skipped}` : `${all}`;
  const cells = [of, killed, timedOut, refused, survived, uncovered, living.length - unexplained.length, score, net];
  const alive = new Set(texts.map(textKey));
  const mutated = new Set(area.parts.flatMap((part) => part.mutate));
  const stale = explainedMutants.filter((text) => mutated.has(text.file) && !alive.has(textKey(text)));
  return {
    row: `| ${[name, ...cells].join(" | ")} |`,
    unexplained,
    stale: skipped > 0 ? [] : stale,
    enough: net >= area.least,
  };
}

function percent(part: number, whole: number): number {
  return whole === 0 ? 100 : Math.floor((part / whole) * 1000) / 10;
}
