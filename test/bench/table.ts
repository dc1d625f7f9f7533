import type { BenchResult, Figures } from "#test/bench/bench.ts";

type Report = BenchResult & { readonly bench: string; readonly node: string };

/** A result for people: the ratios, then the figures with one column for each contender or size. */
export function tableOf({ bench, target, node, ratios, figures, failures }: Report): string {
  const blocks = [`${bench} on ${target}, Node ${node}`];
  if (Object.keys(ratios).length > 0)
    blocks.push(aligned(Object.entries(ratios).map(([name, value]) => [name, `${value}`])));
  for (const columns of columnsByNames(figures)) {
    const [first] = columns;
    if (first === undefined) continue;
    const names = [...first.values.keys()];
    const rows = names.map((name) => [name, ...columns.map(({ values }) => `${values.get(name) ?? ""}`)]);
    blocks.push(aligned([["", ...columns.map(({ title }) => title)], ...rows]));
  }
  if (failures.length > 0) blocks.push(["FAILED", ...failures].join("\n  "));
  return `${blocks.join("\n\n")}\n`;
}

interface Column {
  readonly title: string;
  readonly values: ReadonlyMap<string, string | number>;
}

/** Figures that have the same names stand side by side. */
function columnsByNames(figures: Readonly<Record<string, Figures>>): Iterable<readonly Column[]> {
  const groups = new Map<string, Column[]>();
  for (const [title, of] of Object.entries(figures)) {
    const values = new Map(flat(of));
    const names = [...values.keys()].join("\n");
    groups.set(names, [...(groups.get(names) ?? []), { title, values }]);
  }
  return groups.values();
}

/** Nested figures get names with dots. */
function flat(figures: Figures, prefix = ""): readonly (readonly [string, string | number])[] {
  return Object.entries(figures).flatMap(([name, value]) =>
    typeof value === "object" ? flat(value, `${prefix}${name}.`) : [[`${prefix}${name}`, value] as const],
  );
}

function aligned(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) => row.map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0))))
    .map((cells) => `  ${cells.join("  ")}`.trimEnd())
    .join("\n");
}
