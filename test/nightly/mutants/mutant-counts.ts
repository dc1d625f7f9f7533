import { readFileSync, writeFileSync } from "node:fs";
import { mutationAreas, partId } from "#test/nightly/mutants/areas.ts";

/** How a run of one part ended. */
export interface MutantCounts {
  /** About every n-th mutant was made. */
  readonly every: number;
  readonly killed: number;
  readonly timedOut: number;
  /** Mutants that no test noticed and that the compiler refuses. */
  readonly refused: number;
  readonly survived: number;
  readonly uncovered: number;
  /** The survived and uncovered mutants that are explained. */
  readonly explained: number;
  readonly notSampled: number;
}

export type CountsByPart = Readonly<Record<string, MutantCounts>>;

const file = new URL("counts.json", import.meta.url);

export function recordedCounts(): CountsByPart {
  return JSON.parse(readFileSync(file, "utf8")) as CountsByPart;
}

export function recordCounts(part: string, counts: MutantCounts): void {
  const all = { ...recordedCounts(), [part]: counts };
  const order = Object.entries(mutationAreas).flatMap(([area, { parts }]) =>
    Object.keys(parts).map((name) => partId(area, name)),
  );
  const known = order.flatMap((id) => (all[id] === undefined ? [] : [[id, all[id]]]));
  writeFileSync(file, `${JSON.stringify(Object.fromEntries(known), null, 2)}\n`);
}

const head = [
  "| area | every | mutants | killed | timed out | refused by types | survived | not covered | explained | score | net |",
  "|---|---|---|---|---|---|---|---|---|---|---|",
];

/** The table of the page: a row for each part, and one for all parts of an area that has several. */
export function countsTable(counts: CountsByPart): string {
  const rows = Object.entries(mutationAreas).flatMap(([area, { parts }]) => {
    const ids = Object.keys(parts).map((name) => partId(area, name));
    const played = ids.flatMap((id) => (counts[id] === undefined ? [] : [{ id, counts: counts[id] }]));
    const own = played.map(({ id, counts }) => row(id, [counts]));
    if (ids.length === 1 || played.length < 2) return own;
    const name = played.length === ids.length ? area : `${area}, ${played.length} of ${ids.length} parts`;
    return [
      ...own,
      row(
        name,
        played.map(({ counts }) => counts),
      ),
    ];
  });
  return [...head, ...rows].join("\n");
}

/** The percentage of mutants that died, not counting explained ones. */
export function netScore(parts: readonly MutantCounts[]): number {
  const { dead, survived, uncovered, explained } = sumOf(parts);
  return percent(dead, dead + survived + uncovered - explained);
}

function row(name: string, parts: readonly MutantCounts[]): string {
  const { killed, timedOut, refused, survived, uncovered, explained, notSampled, dead } = sumOf(parts);
  const all = dead + survived + uncovered;
  const rates = [...new Set(parts.map(({ every }) => every))].sort((a, b) => a - b);
  const [least, most] = [rates[0], rates.at(-1)];
  const every = least === most ? `${least}` : `${least} to ${most}`;
  const of = notSampled > 0 ? `${all} of ${all + notSampled}` : `${all}`;
  const scores = [percent(dead, all), netScore(parts)];
  return `| ${[name, every, of, killed, timedOut, refused, survived, uncovered, explained, ...scores].join(" | ")} |`;
}

function sumOf(parts: readonly MutantCounts[]) {
  const sum = (count: (part: MutantCounts) => number) => parts.reduce((all, part) => all + count(part), 0);
  return {
    killed: sum(({ killed }) => killed),
    timedOut: sum(({ timedOut }) => timedOut),
    refused: sum(({ refused }) => refused),
    dead: sum(({ killed, timedOut, refused }) => killed + timedOut + refused),
    survived: sum(({ survived }) => survived),
    uncovered: sum(({ uncovered }) => uncovered),
    explained: sum(({ explained }) => explained),
    notSampled: sum(({ notSampled }) => notSampled),
  };
}

function percent(part: number, whole: number): number {
  return whole === 0 ? 100 : Math.floor((part / whole) * 1000) / 10;
}
