import type { StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";

const barCells = 20;

/** The number of clusters that are done, with a bar if there are many. */
export function doneText({ counts, size }: Pick<StageRunRow, "counts" | "size">, clusters: "few" | "many"): string {
  const done = counts.Succeeded + counts.Unchanged;
  return clusters === "few" ? String(done) : `${done.toLocaleString("en")} ${bar(done, size)}`;
}

function bar(done: number, size: number): string {
  const share = size === 0 ? 1 : done / size;
  const filled = Math.floor(share * barCells);
  const percent = `${Math.floor(share * 100)}%`.padStart(4);
  return `${"█".repeat(filled)}${"░".repeat(barCells - filled)} ${percent}`;
}
