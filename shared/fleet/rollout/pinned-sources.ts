import type { PinnedSource, Plan } from "#shared/fleet/rows/rollout-rows.ts";

/** The Sources of all templates of a plan, those of values files too. */
export function pinnedSources({ templates }: Plan): readonly PinnedSource[] {
  return templates.flatMap((template) => [template, ...(template.besides ?? [])]);
}
