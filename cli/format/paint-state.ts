import { isGood, needsSomebody } from "#shared/words/state-words.ts";

/** Red, green or yellow for a terminal; keeps the padding. */
export function paintState(cell: string, column: string): string {
  if (column !== "STATE") return cell;
  const word = cell.trim().split(" ")[0] ?? "";
  const colour = needsSomebody(word) ? 31 : isGood(word) ? 32 : 33;
  return `\u001b[${colour}m${cell}\u001b[0m`;
}
