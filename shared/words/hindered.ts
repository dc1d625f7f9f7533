import type { TargetItem } from "#shared/fleet/api/objects.ts";
import { later } from "#shared/fleet/rows/due.ts";
import { type Cause, causesOf } from "#shared/words/causes.ts";

/** What is applied takes a moment to be ready. */
const readySeconds = 15;

/** Clusters that are being changed and do not get on: the worker tries again, or objects are not ready for a while. */
export function hindered(targets: readonly TargetItem[], now: Date): readonly TargetItem[] {
  return targets.filter(({ state, reason, retrying, assignedAt }) => {
    if (retrying === true) return true;
    if (state !== "Verifying" || reason === "" || assignedAt === undefined) return false;
    return later(assignedAt, readySeconds) <= now.toISOString();
  });
}

/** `c2 and 3 more: NotFound: namespace "shop" not found`, the most common first; each with what tells it from others. */
export function hindranceLines(
  targets: readonly TargetItem[],
): readonly { readonly cause: string; readonly line: string }[] {
  return causesOf(targets).map(({ word, detail, targets: those }: Cause) => {
    const [first] = those;
    const more = those.length > 1 ? ` and ${those.length - 1} more` : "";
    const why = detail === "" || detail === word ? word : detail.startsWith(word) ? detail : `${word}: ${detail}`;
    const again = first?.retrying === true ? " (is tried again)" : "";
    return {
      cause: `${word} ${detail.replaceAll(/\d+/g, "#")}`,
      line: `${first?.cluster ?? ""}${more}: ${why}${again}`,
    };
  });
}
