import { refusal } from "#functions/api/request/refusal.ts";
import { parseSelectorText } from "#shared/fleet/kinds/selector-text.ts";
import type { NamedClusters } from "#shared/fleet/rows/named-clusters.ts";

/** @throws StarlingError `BadRequest`, for the field `clusters`. @param text - a label selector as people write it. */
export function labelSelection(text: string | undefined): NamedClusters["clusters"] {
  if (text === undefined) return undefined;
  const parsed = parseSelectorText(text);
  if (!parsed.ok) throw refusal("BadRequest", `clusters: ${parsed.message}`);
  return { text, selector: parsed.selector };
}
