import type { Document } from "#shared/fleet/kinds/document.ts";
import { neverOpensText } from "#shared/fleet/windows/never-opens.ts";

/** A Window that never opens is no error, because its times become the past by themselves. */
export function windowWarnings(documents: readonly Document[], now: Date): readonly (readonly string[])[] {
  return documents.map((document) => {
    const text = document.kind === "Window" ? neverOpensText(document.spec, now) : undefined;
    return text === undefined ? [] : [text];
  });
}
