import type { TargetItem } from "#shared/fleet/api/objects.ts";
import { later } from "#shared/fleet/rows/due.ts";
import { type Cause, causesOf } from "#shared/words/causes.ts";

/** Applied objects usually take a moment to become ready. */
const readySeconds = 15;

/** Clusters of a rollout that make no progress: the worker tries again, or objects have not been ready for a while. */
export function hindered(targets: readonly TargetItem[], now: Date): readonly TargetItem[] {
  return targets.filter(({ state, reason, retrying, assignedAt }) => {
    if (retrying === true) return true;
    if (state !== "Verifying" || reason === "" || assignedAt === undefined) return false;
    return later(assignedAt, readySeconds) <= now.toISOString();
  });
}

/**
 * `c2 and 3 more: NotFound: namespace "shop" not found`, the most common first, each with a key that identifies its
 * cause.
 */
export function hindranceLines(
  targets: readonly TargetItem[],
): readonly { readonly cause: string; readonly line: string }[] {
  return causesOf(targets).map(({ word, detail, targets: those }: Cause) => {
    const [first] = those;
    const more = those.length > 1 ? ` and ${those.length - 1} more` : "";
    const why = detail === "" || detail === word ? word : detail.startsWith(word) ? detail : `${word}: ${detail}`;
    const again = first?.retrying === true ? " (Starling tries again)" : "";
    return {
      cause: `${word} ${detail.replaceAll(/\d+/g, "#")}`,
      line: `${first?.cluster ?? ""}${more}: ${why}${again}`,
    };
  });
}
