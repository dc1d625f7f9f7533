/** Parts of sentences about the acts of people. */
import type { Act } from "#shared/fleet/rows/object-rows.ts";

/** `promoted by ana: INC-1`. */
export function statedText(what: string, { by, reason }: Pick<Act, "by" | "reason">): string {
  return `${what} by ${by}${reason === undefined ? "" : `: ${reason}`}`;
}

/** The end of what a person stopped as the rest of a sentence; empty without one. */
export function endText({ until }: { readonly until?: string | undefined }): string {
  return until === undefined ? "" : `, until ${until}`;
}
