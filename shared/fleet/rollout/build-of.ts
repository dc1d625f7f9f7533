/** The input of a build: pure, from the template and the cluster's values. */
import { defined } from "#shared/base/defined.ts";
import { buildOptionsOf } from "#shared/fleet/rollout/chart-inputs.ts";
import { overridden } from "#shared/fleet/rollout/override.ts";
import { specialisationOf } from "#shared/fleet/rollout/specialise.ts";
import type { BoundInputs, PlannedTemplate, RenderingRow } from "#shared/fleet/rows/rollout-rows.ts";

export type BuildInput = Pick<RenderingRow, "artifactDigest" | "path" | "render" | "specialise">;

/** @param input - input of the template on a cluster. */
export function buildOf(
  template: PlannedTemplate,
  {
    path,
    overrides,
    bound,
  }: { readonly path: string; readonly overrides?: readonly number[]; readonly bound?: BoundInputs },
): BuildInput {
  const special = overridden(template, overrides);
  const render = buildOptionsOf(special, bound);
  const specialise = specialisationOf(special, bound);
  return { artifactDigest: special.artifactDigest, path, ...defined({ render, specialise }) };
}
